from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.memory.options import LORA_RANKS
from moorage.models.assets import (
    LARGEST_RANK,
    assets_of,
    base_model,
    is_made_for,
    largest_rank,
    require_lora,
    require_rank,
)
from moorage.models.pin import AssetRole
from moorage.models.source import ResolvedModel, join_companions
from moorage.spec.patterns import MISTRAL_FILES
from tests.builders import a_model, a_spec, with_companions

EVERYTHING = a_spec(
    revision="main",
    trust_remote_code=True,
    lora=[
        {"name": "poet", "source": "hf://org/poet", "revision": "v2", "rank": 24},
        {"name": "judge", "source": "file:///adapters/judge"},
    ],
    speculative={"method": "draft_model", "tokens": 3, "model": "hf://org/small", "revision": "x"},
)


@pytest.mark.parametrize(
    ("engine", "anything"),
    [({"name": "vllm"}, False), ({"name": "custom", "image": "a:1", "command": ["serve"]}, True)],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)
def test_a_custom_engine_may_load_a_directory_of_anything(
    engine: dict[str, Any], anything: bool
) -> None:
    assert assets_of(a_spec(engine=engine))[0].anything is anything


def test_everything_that_a_spec_names_is_an_asset_the_model_first() -> None:
    found = assets_of(EVERYTHING)
    assert [(a.role, a.name, a.source, a.revision, a.rank) for a in found] == [
        (AssetRole.MODEL, "tiny", "hf://org/tiny", "main", None),
        (AssetRole.ADAPTER, "poet", "hf://org/poet", "v2", 24),
        (AssetRole.ADAPTER, "judge", "file:///adapters/judge", None, None),
        (AssetRole.DRAFT, "draft", "hf://org/small", "x", None),
    ]


@pytest.mark.parametrize(
    ("files", "args", "selected"),
    [
        (None, [], None),
        ("auto", [], None),
        ("*Q4*", [], "*Q4*"),
        (None, ["--load-format mistral"], MISTRAL_FILES),
        ("auto", ["--load_format=mistral"], MISTRAL_FILES),
        ("consolidated*", ["--load-format mistral"], "consolidated*"),
    ],
)
def test_the_files_of_a_model_follow_its_own_pattern_or_the_layout_to_load(
    files: str | None, args: list[str], selected: str | None
) -> None:
    model, *_ = assets_of(a_spec(files=files, engine={"name": "vllm", "args": args}))
    assert model.files == selected


def test_an_adapter_never_runs_code_of_its_own() -> None:
    assert [asset.trust_remote_code for asset in assets_of(EVERYTHING)] == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("drafts", [None, {"method": "ngram", "tokens": 3}, {"method": "mtp"}])
def test_drafts_without_a_model_of_their_own_need_nothing(drafts: dict[str, object]) -> None:
    assert [a.role for a in assets_of(a_spec(speculative=drafts))] == [AssetRole.MODEL]


def test_the_steps_of_a_companion_carry_its_name() -> None:
    assert [asset.step for asset in assets_of(EVERYTHING)] == ["", " poet", " judge", " draft"]


def test_companions_are_joined_and_pinned() -> None:
    assets = assets_of(EVERYTHING)
    found = [a_model({"r": 4}, source=asset.source, revision=asset.name) for asset in assets]
    together = join_companions(assets, found)
    assert [(pin.name, pin.revision, pin.rank) for pin in together.pins] == [
        ("poet", "poet", 4),
        ("judge", "judge", 4),
        ("draft", "draft", None),
    ]
    assert together.draft == found[3]


def test_a_model_with_companions_survives_its_json() -> None:
    model = with_companions(a_model(), EVERYTHING)
    assert ResolvedModel.model_validate_json(model.model_dump_json()) == model


@pytest.mark.parametrize(
    ("config", "rank"),
    [
        ({"r": 16}, 16),
        ({"r": 8, "rank_pattern": {"q_proj": 105}}, 105),
        ({"rank_pattern": {"q_proj": 4}}, 4),
        ({"r": "16"}, None),
        ({"r": 8, "rank_pattern": ["q"]}, 8),
        ({}, None),
        (None, None),
    ],
)
def test_the_rank_of_an_adapter_is_its_largest(config: dict[str, Any] | None, rank: int) -> None:
    assert largest_rank(config) == rank


@pytest.mark.parametrize("config", [{"peft_type": "LORA"}, {}])
def test_a_lora_may_be_served(config: dict[str, Any]) -> None:
    require_lora(config)


@pytest.mark.parametrize("kind", ["PREFIX_TUNING", "IA3", "lora", None])
def test_another_kind_of_adapter_is_refused_by_its_name(kind: str | None) -> None:
    with pytest.raises(Failure, match=f"peft_type {kind!r}") as caught:
        require_lora({"peft_type": kind})
    assert caught.value.cause is Cause.SOURCE_INCOMPLETE


@pytest.mark.parametrize("stated", [None, 16, 64])
def test_a_stated_rank_that_holds_the_adapter_is_taken(stated: int | None) -> None:
    require_rank("poet", stated, {"r": 16})


def test_a_stated_rank_that_is_too_small_is_refused() -> None:
    with pytest.raises(Failure, match="poet has rank 16, the spec makes room for 8") as caught:
        require_rank("poet", 8, {"r": 16})
    assert caught.value.cause is Cause.BAD_SPEC


def test_an_adapter_that_does_not_tell_its_rank_is_taken_by_the_word_of_the_spec() -> None:
    require_rank("poet", 1, {})


@pytest.mark.parametrize(
    ("base", "source", "same"),
    [
        ("meta-llama/Llama-3.1-8B", "hf://meta-llama/Llama-3.1-8B", True),
        ("Meta-Llama/llama-3.1-8b", "hf://meta-llama/Llama-3.1-8B", True),
        ("meta-llama/Llama-3.1-8B", "hf://unsloth/Llama-3.1-8B", False),
        ("meta-llama/Llama-3.1-8B", "hf://meta-llama/Llama-3.1-70B", False),
        ("meta-llama/Llama-3.1-8B", "file:///models/Llama-3.1-8B/", True),
        ("/home/me/train/Llama-3.1-8B/", "hf://meta-llama/Llama-3.1-8B", True),
        ("/home/me/train/mine", "file:///models/Llama-3.1-8B", False),
        ("", "file:///models/Llama-3.1-8B", True),
    ],
)
def test_the_base_model_of_an_adapter_is_compared_as_far_as_it_says_something(
    base: str, source: str, same: bool
) -> None:
    assert is_made_for(base, source) is same


@pytest.mark.parametrize(("config", "base"), [({"base_model_name_or_path": None}, ""), ({}, "")])
def test_an_adapter_need_not_name_its_base_model(config: dict[str, Any], base: str) -> None:
    assert base_model(config) == base


@pytest.mark.parametrize(("stated", "real"), [(None, 513), (600, 16), (600, None)])
def test_a_rank_beyond_what_engines_take_is_refused(stated: int | None, real: int | None) -> None:
    with pytest.raises(Failure, match="engines take at most 512") as refusal:
        require_rank("poet", stated, {} if real is None else {"r": real})
    assert refusal.value.cause is Cause.BAD_SPEC
    require_rank("poet", 512, {"r": 512})


def test_room_is_made_for_every_rank_that_is_taken() -> None:
    assert LORA_RANKS[-1] == LARGEST_RANK
