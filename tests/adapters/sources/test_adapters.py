"""LoRA adapters are found, pinned and staged as models are, from a hub and from directories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.sources import resolve_all, resolve_one, source_for
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.models.assets import Asset
from moorage.models.pin import AssetRole
from moorage.models.source import ResolvedModel
from tests.builders import a_spec
from tests.hub.server import Hub
from tests.hub.tiny import gguf, model, safetensors

POET = "org/poet"
CONFIG = {"peft_type": "LORA", "r": 4, "base_model_name_or_path": "org/tiny"}


def adapter(**changes: Any) -> dict[str, bytes]:
    """The files of an adapter, and what a repository has besides."""
    return {
        "adapter_config.json": json.dumps({**CONFIG, **changes}).encode(),
        "adapter_model.safetensors": safetensors({"a": ("F32", [4, 64]), "b": ("F32", [64, 4])}),
        "README.md": b"a poet",
    }


def asset(source: str = f"hf://{POET}", **changes: Any) -> Asset:
    values = {"role": AssetRole.ADAPTER, "name": "poet", "source": source, **changes}
    return Asset.model_validate(values)


@pytest.fixture
def poets() -> Iterator[Hub]:
    with Hub({POET: adapter(), "org/tiny": model()}) as hub:
        yield hub


@pytest.fixture
def settings(poets: Hub, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, hub_endpoint=poets.url)


def staged(wanted: Asset, settings: Settings) -> ResolvedModel:
    found = resolve_one(wanted, settings)
    return source_for(wanted, settings).stage(found, lambda _done, _all: None)


def test_an_adapter_of_a_hub_is_pinned_and_read_before_it_is_downloaded(
    poets: Hub, settings: Settings
) -> None:
    found = resolve_one(asset(), settings)
    assert found.revision == poets.branches[POET]["main"]
    assert (found.config["r"], found.config_origin, found.staged) == (
        4,
        "adapter_config.json",
        False,
    )
    assert {file.name for file in found.files} == {
        "adapter_config.json",
        "adapter_model.safetensors",
    }
    assert found.headers["a"].shape == (4, 64)


def test_a_revision_is_pinned_though_its_branch_goes_on(poets: Hub, settings: Settings) -> None:
    poets.push(POET, adapter(), branch="v1")
    moved = poets.push(POET, adapter(r=8))
    old, new = resolve_one(asset(revision="v1"), settings), resolve_one(asset(), settings)
    assert (old.config["r"], new.config["r"]) == (4, 8)
    assert new.revision == moved != old.revision


def test_an_adapter_is_staged_complete_and_verified(settings: Settings) -> None:
    there = staged(asset(), settings)
    assert there.staged
    assert there.path.startswith(str(settings.adapters))
    content = Path(there.path, "adapter_model.safetensors").read_bytes()
    assert content == adapter()["adapter_model.safetensors"]
    assert not Path(there.path, "README.md").exists()


def test_a_repository_with_a_model_and_an_adapter_is_kept_twice(
    poets: Hub, settings: Settings
) -> None:
    poets.push(POET, {**model(), **adapter()})
    as_adapter = staged(asset(), settings)
    as_model = staged(asset(role=AssetRole.MODEL), settings)
    assert as_adapter.revision == as_model.revision
    assert as_adapter.path != as_model.path
    assert "config.json" in {file.name for file in as_model.files}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (adapter(peft_type="IA3"), "peft_type 'IA3'"),
        ({"adapter_config.json": b"{}"}, "no adapter_model.safetensors"),
        (model(), "no adapter_config.json"),
    ],
    ids=["another kind", "no weights", "a model"],
)
def test_what_is_no_lora_is_refused(
    poets: Hub, settings: Settings, tmp_path: Path, files: dict[str, bytes], words: str
) -> None:
    poets.push(POET, files)
    directory = tmp_path / "poet"
    directory.mkdir()
    for name, content in files.items():
        (directory / name).write_bytes(content)
    for source in (f"hf://{POET}", f"file://{directory}"):
        with pytest.raises(Failure, match=words) as caught:
            resolve_one(asset(source), settings)
        assert caught.value.cause is Cause.SOURCE_INCOMPLETE


def test_a_configuration_that_is_no_object_is_unreadable(poets: Hub, settings: Settings) -> None:
    poets.push(POET, {**adapter(), "adapter_config.json": b"[]"})
    with pytest.raises(Failure) as caught:
        resolve_one(asset(), settings)
    assert caught.value.cause is Cause.CONFIG_UNREADABLE


def test_a_local_adapter_has_a_fingerprint(settings: Settings, tmp_path: Path) -> None:
    directory = tmp_path / "poet"
    directory.mkdir()
    for name, content in adapter().items():
        (directory / name).write_bytes(content)
    before = resolve_one(asset(f"file://{directory}"), settings)
    (directory / "adapter_config.json").write_text(json.dumps({**CONFIG, "r": 16}))
    after = resolve_one(asset(f"file://{directory}"), settings)
    assert before.revision.startswith("local-")
    assert before.revision != after.revision


AS_GGUF = gguf(
    {"blk.0.attn_q.weight.lora_a": (1, [64, 4])},
    512,
    more={"general.type": "adapter", "adapter.type": "lora"},
)


def test_an_adapter_may_be_a_gguf_file_of_a_hub_a_folder_or_a_file(
    poets: Hub, settings: Settings, tmp_path: Path
) -> None:
    files = {"poet-F16.gguf": AS_GGUF, "poet-F32.gguf": b"larger", **adapter()}
    poets.push(POET, files)
    directory = tmp_path / "poet"
    directory.mkdir()
    for name, content in files.items():
        (directory / name).write_bytes(content)
    file = asset(f"file://{directory}/poet-F16.gguf")
    folder = asset(f"file://{directory}", files="*F16*")
    for wanted in (asset(files="*F16*"), folder, file):
        there = staged(wanted, settings)
        assert (there.config, there.config_origin) == ({"model_type": "llama"}, "GGUF header")
        assert (there.weights.family, there.weights.bytes) == ("gguf", 512)
        assert [one.name for one in there.files] == ["poet-F16.gguf"]
        assert Path(there.path, "poet-F16.gguf").read_bytes() == AS_GGUF


def test_a_stated_rank_that_does_not_hold_the_adapter_is_refused(settings: Settings) -> None:
    with pytest.raises(Failure, match="poet has rank 4") as caught:
        resolve_one(asset(rank=2), settings)
    assert caught.value.cause is Cause.BAD_SPEC


def test_a_spec_is_resolved_with_everything_beside_its_model(settings: Settings) -> None:
    spec = a_spec(
        lora=[{"name": "poet", "source": f"hf://{POET}"}],
        speculative={"method": "draft_model", "tokens": 2, "model": "hf://org/tiny"},
    )
    found = resolve_all(spec, settings)
    assert [(pin.role, pin.name, pin.rank) for pin in found.pins] == [
        (AssetRole.ADAPTER, "poet", 4),
        (AssetRole.DRAFT, "draft", None),
    ]
    draft = found.draft
    assert draft
    assert draft.weights == found.weights
