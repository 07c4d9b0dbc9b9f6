from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB, MIB
from moorage.placement.baseline.parameters import ErrorClass
from moorage.placement.baseline.place import terms_of
from moorage.placement.baseline.terms import Terms
from tests.placement.baseline.builders import a_request, named

QWEN = "Qwen3ForCausalLM"


def terms(claim: int = 0, *args: str, **changes: Any) -> Terms:
    return terms_of(a_request(claim, *args, **changes))


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"weight_bytes": 1000}, 1200 + 2 * GIB),
        ({"weight_bytes": 1001}, 1201 + 2 * GIB),
        ({"weight_bytes": 1000, "adapter_bytes": 100}, 1320 + 2 * GIB),
        ({"weight_bytes": 1000, "categories": ()}, 1200 + 2 * GIB),
        ({"weight_bytes": 1000, "categories": ("embedding", "llm")}, 1200 + 2 * GIB),
        ({"weight_bytes": 1000, "categories": ("embedding",)}, 1200 + 512 * MIB),
        ({"weight_bytes": 1000, "categories": ("text_to_speech",)}, 3000 + 512 * MIB),
        ({"weight_bytes": 1000, "adapter_bytes": 9, "categories": ("image",)}, 1000),
        ({"weight_bytes": 1000, "categories": ("image", "text_to_speech")}, 1000),
        ({"weight_bytes": 0}, 2 * GIB),
        ({"weight_bytes": 1000, "claim": 7}, 7),
        ({"weight_bytes": 1000, "claim": 7, "categories": ("image",)}, 7),
        (
            {"weight_bytes": 437955512 + 437997357, "categories": ("embedding",)},
            1588014354,
        ),
        ({"weight_bytes": 65524330000}, 80776679648),
    ],
    ids=str,
)
def test_a_model_needs_its_weights_and_a_fifth_and_an_overhead(
    changes: dict[str, Any], claim: int
) -> None:
    assert terms(**changes).claim == claim


@pytest.mark.parametrize(
    ("categories", "architecture", "line", "share"),
    [
        ("", "X", "", 0.9),
        ("llm", "X", "", 0.9),
        ("speech_to_text", "X", "", 0.9),
        ("embedding llm", "X", "", 0.9),
        ("embedding", "X", "", 0.0),
        ("reranker", "X", "", 0.0),
        ("text_to_speech", "X", "", 0.0),
        ("embedding", QWEN, "", 0.9),
        ("reranker", "Qwen3ForSequenceClassification", "", 0.9),
        ("embedding", "Qwen3VLForConditionalGeneration", "", 0.9),
        ("embedding", "Qwen3VLForSequenceClassification", "", 0.0),
        ("image", QWEN, "", 0.0),
        ("embedding", QWEN, "--omni", 0.0),
        ("embedding", "X", f'--hf-overrides={{"architectures": ["{QWEN}"]}}', 0.0),
        ("llm", "X", "--gpu-memory-utilization=0.5", 0.5),
        ("embedding", "X", "--gpu-memory-utilization 0.5", 0.5),
        ("llm", "X", "--gpu-memory-utilization=1", 1.0),
        ("llm", "X", "--gpu_memory_utilization=0.5", 0.9),
    ],
)
def test_the_share_of_each_accelerator(
    categories: str, architecture: str, line: str, share: float
) -> None:
    args = [line] if line else []
    changes = {"categories": tuple(categories.split()), "architectures": (architecture,)}
    assert terms(0, *args, **changes).utilization == share


@pytest.mark.parametrize("value", ["much", "nan", "inf", "90%"])
def test_a_share_is_a_number(value: str) -> None:
    with pytest.raises(Failure) as caught:
        terms(0, f"--gpu-memory-utilization={value}")
    assert caught.value.named == {"class": ErrorClass.UNREADABLE}


@pytest.mark.parametrize(
    ("listed", "per_replica", "args", "wanted"),
    [
        ((), None, [], 0),
        ((), None, ["--tp=8"], 8),
        (("a:0", "a:1"), None, [], 2),
        (("a:0", "a:1"), 1, [], 1),
        (("a:0", "a:1"), None, ["--tp=2"], 2),
        (("a:0", "a:1"), 1, ["--tp=1"], 1),
    ],
)
def test_the_named_accelerators_or_the_sizes_say_how_many(
    listed: tuple[str, ...], per_replica: int | None, args: list[str], wanted: int
) -> None:
    place = {"accelerators": named(*listed), "accelerators_per_replica": per_replica}
    assert terms(0, *args, **(place if listed else {})).wanted == wanted


def test_a_stated_count_of_accelerators_is_what_a_replica_takes() -> None:
    assert terms(accelerators=4).wanted == 4


@pytest.mark.parametrize(
    ("categories", "args", "reads"),
    [
        ("llm", [], True),
        ("", [], True),
        ("llm image", [], False),
        ("text_to_speech", [], False),
        ("llm", ["--omni"], False),
        ("llm", ["--omni=false"], True),
    ],
)
def test_image_and_speech_models_have_no_config_to_read(
    categories: str, args: list[str], reads: bool
) -> None:
    worked_out = terms(0, *args, categories=tuple(categories.split()), attention_heads=25)
    assert worked_out.allows(2) is not reads


HEADS, VISION, VOCABULARY = ErrorClass.HEADS, ErrorClass.VISION_HEADS, ErrorClass.VOCABULARY


@pytest.mark.parametrize(
    ("heads", "vision_heads", "vocab_size", "ranks", "error"),
    [
        (32, 16, 151936, 8, None),
        (25, 16, 151936, 2, HEADS),
        (25, 15, 10001, 2, HEADS),
        (24, 16, 151938, 6, VISION),
        (24, 16, 10001, 6, VISION),
        (32, 16, 10001, 2, VOCABULARY),
        (0, 0, 0, 7, None),
        (None, None, None, 7, None),
        (128, None, 129280, 7, HEADS),
        (25, None, None, None, None),
        (25, None, None, 1, None),
    ],
)
def test_the_first_obstacle_counts(
    heads: int | None,
    vision_heads: int | None,
    vocab_size: int | None,
    ranks: int | None,
    error: ErrorClass | None,
) -> None:
    model = terms(attention_heads=heads, vision_heads=vision_heads, vocab_size=vocab_size)
    obstacle = model.obstacle(ranks)
    assert (obstacle[0] if obstacle else None) == error
    assert obstacle is None or str(ranks) in obstacle[1]


def test_zero_ranks_are_never_allowed() -> None:
    assert not terms().allows(0)
    assert terms().allows(3)
    assert not terms(attention_heads=25).allows(3)


MP = "--distributed-executor-backend=mp"
MODEL = {"attention_heads": 25, "vision_heads": 15, "vocab_size": 10001}


@pytest.mark.parametrize(
    ("line", "changes", "error"),
    [
        ("--tp=0", {}, ErrorClass.NON_POSITIVE),
        ("--tp=2", {"attention_heads": 32, "vision_heads": 16, "vocab_size": 100}, None),
        ("--tp=2", MODEL, ErrorClass.HEADS),
        ("--tp=5", MODEL, ErrorClass.VOCABULARY),
        ("--tp=25", MODEL, ErrorClass.VISION_HEADS),
        ("--tp=25 --language-model-only", MODEL, ErrorClass.VOCABULARY),
        ("--tp=2", {**MODEL, "categories": ("image",)}, None),
        ("--tp=2 --omni", MODEL, None),
        ("--pp=2", MODEL, None),
        ("--tp=2 --dp=3 --dpl=2", {}, None),
        (f"--tp=2 --dp=3 --dpl=2 {MP}", {}, ErrorClass.LOCAL_RANKS),
        (f"--tp=2 --dp=3 --dpl=2 {MP}", MODEL, ErrorClass.HEADS),
        ("--tp=2", {"accelerators": named("a:0")}, ErrorClass.COUNT),
        ("--tp=2", {"accelerators": named("a:0"), **MODEL}, ErrorClass.COUNT),
        ("--tp=2 --pp=-1", {"accelerators": named("a:0")}, ErrorClass.NON_POSITIVE),
        ("--gpu-memory-utilization=x", {}, ErrorClass.UNREADABLE),
        ("--tp=2 --gpu-memory-utilization=x", MODEL, ErrorClass.HEADS),
    ],
)
def test_the_first_contradiction_of_a_request_is_its_class(
    line: str, changes: dict[str, Any], error: ErrorClass | None
) -> None:
    if error is None:
        terms(10, line, **changes)
        return
    with pytest.raises(Failure) as caught:
        terms(10, line, **changes)
    assert caught.value.cause == Cause.BAD_SPEC
    assert caught.value.named == {"class": error}


def test_named_accelerators_that_disagree_with_the_sizes_are_counted() -> None:
    with pytest.raises(Failure, match=r"2 accelerators are selected .* sizes take 4"):
        terms(0, "--tp=4", accelerators=named("a:0", "a:1"))


SHARE = {0: 100}


@pytest.mark.parametrize(
    ("cache", "memory", "needed", "claimed"),
    [
        (None, SHARE, 0, 0),
        ({"ram": 8 * GIB}, SHARE, 8 * GIB, 8 * GIB),
        ({"ram": 8 * GIB, "ratio": 2.0}, {}, 8 * GIB, 8 * GIB),
        ({}, {0: 100, 1: 50}, 0, 180),
        ({"ratio": 2.0}, {0: 23413653504}, 0, 46827307008),
        ({"ratio": 0.5}, {0: 3}, 0, 1),
        ({"ratio": 2.0}, {}, 0, 0),
    ],
    ids=str,
)
def test_ram_goes_by_size_or_by_what_is_taken_of_the_accelerators(
    cache: dict[str, Any] | None, memory: dict[int, int], needed: int, claimed: int
) -> None:
    worked_out = terms(extended_kv_cache=cache)
    assert worked_out.ram == needed
    assert worked_out.share("h", [*memory], memory).ram_bytes == claimed
