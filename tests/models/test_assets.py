from __future__ import annotations

import pytest

from moorage.models.assets import AssetRole, assets_of
from moorage.models.source import ResolvedModel, brought_together
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


def test_everything_that_a_spec_names_is_an_asset_the_model_first() -> None:
    found = assets_of(EVERYTHING)
    assert [(a.role, a.name, a.source, a.revision, a.rank) for a in found] == [
        (AssetRole.MODEL, "tiny", "hf://org/tiny", "main", None),
        (AssetRole.ADAPTER, "poet", "hf://org/poet", "v2", 24),
        (AssetRole.ADAPTER, "judge", "file:///adapters/judge", None, None),
        (AssetRole.DRAFT, "draft", "hf://org/small", "x", None),
    ]


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


def test_what_was_found_is_brought_together_and_pinned() -> None:
    assets = assets_of(EVERYTHING)
    found = [a_model({"r": 4}, source=asset.source, revision=asset.name) for asset in assets]
    together = brought_together(assets, found)
    assert [(pin.name, pin.revision, pin.rank) for pin in together.pins] == [
        ("poet", "poet", 4),
        ("judge", "judge", 4),
        ("draft", "draft", None),
    ]
    assert together.companion(AssetRole.ADAPTER, "judge") == found[2]
    assert together.companion(AssetRole.DRAFT) == found[3]
    assert together.companion(AssetRole.ADAPTER, "nobody") is None


def test_a_model_with_companions_survives_its_json() -> None:
    model = with_companions(a_model(), EVERYTHING)
    assert ResolvedModel.model_validate_json(model.model_dump_json()) == model
