from __future__ import annotations

import pytest

from moorage.placement.baseline.parameters import Parameters
from moorage.placement.baseline.refusal import ErrorClass, RefusedRequest
from moorage.placement.baseline.terms import Divisibility, reads_config, utilization
from tests.placement.baseline.builders import a_request

QWEN = "Qwen3ForCausalLM"


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
        ("llm", "X", "--gpu-memory-utilization=0", 0.0),
        ("llm", "X", "--gpu-memory-utilization=1", 1.0),
        ("llm", "X", "--gpu-memory-utilization=", 0.9),
        ("llm", "X", "--gpu_memory_utilization=0.5", 0.9),
    ],
)
def test_the_share_of_each_accelerator(
    categories: str, architecture: str, line: str, share: float
) -> None:
    request = a_request(categories=tuple(categories.split()), architectures=(architecture,))
    assert utilization(request, Parameters([line])) == share


@pytest.mark.parametrize("value", ["much", "nan", "inf", "90%"])
def test_a_share_is_a_number(value: str) -> None:
    with pytest.raises(RefusedRequest) as caught:
        utilization(a_request(), Parameters([f"--gpu-memory-utilization={value}"]))
    assert caught.value.refusal.error is ErrorClass.UNREADABLE


@pytest.mark.parametrize(
    ("categories", "line", "reads"),
    [
        ("llm", "", True),
        ("", "", True),
        ("llm image", "", False),
        ("text_to_speech", "", False),
        ("llm", "--omni", False),
        ("llm", "--omni=false", True),
    ],
)
def test_image_and_speech_models_have_no_config_to_read(
    categories: str, line: str, reads: bool
) -> None:
    request = a_request(categories=tuple(categories.split()))
    assert reads_config(request, Parameters([line])) is reads


HEADS, VISION, VOCABULARY = ErrorClass.HEADS, ErrorClass.VISION_HEADS, ErrorClass.VOCABULARY


@pytest.mark.parametrize(
    ("model", "ranks", "error"),
    [
        (Divisibility(32, 16, 151936), 8, None),
        (Divisibility(25, 16, 151936), 2, HEADS),
        (Divisibility(25, 15, 10001), 2, HEADS),
        (Divisibility(24, 16, 151938), 6, VISION),
        (Divisibility(24, 16, 10001), 6, VISION),
        (Divisibility(32, 16, 10001), 2, VOCABULARY),
        (Divisibility(0, 0, 0), 7, None),
        (Divisibility(), 7, None),
        (Divisibility(128, None, 129280), 7, HEADS),
        (Divisibility(25), None, None),
        (Divisibility(25), 1, None),
    ],
)
def test_the_first_obstacle_is_told(
    model: Divisibility, ranks: int | None, error: ErrorClass | None
) -> None:
    obstacle = model.obstacle(ranks)
    assert (obstacle.error if obstacle else None) == error
    assert obstacle is None or str(ranks) in obstacle.meaning


def test_zero_ranks_are_never_allowed() -> None:
    assert not Divisibility().allows(0)
    assert Divisibility().allows(3)
    assert not Divisibility(25).allows(3)
