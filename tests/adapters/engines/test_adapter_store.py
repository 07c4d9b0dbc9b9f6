from __future__ import annotations

from pathlib import Path

import pytest

from moorage.adapters.engines.adapter_store import adapter_path, install, remove_unused
from moorage.common.failures import Cause, Failure
from moorage.models.assets import AssetRole, Pin
from moorage.models.source import ModelFile, ResolvedModel
from tests.builders import a_model


def pin(name: str = "poet", revision: str = "a1") -> Pin:
    return Pin(role=AssetRole.ADAPTER, name=name, source="file:///poet", revision=revision)


@pytest.fixture
def adapter(tmp_path: Path) -> ResolvedModel:
    source = tmp_path / "source"
    source.mkdir()
    (source / "adapter_config.json").write_bytes(b"{}")
    return a_model(path=str(source), files=(ModelFile(name="adapter_config.json", size=2),))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "loaded" / "tiny"


def test_an_adapter_is_copied_to_a_path_of_its_revision(
    adapter: ResolvedModel, folder: Path
) -> None:
    place = install(adapter, pin(), folder)
    assert place == folder / "poet" / "a1"
    (Path(adapter.path) / "adapter_config.json").write_bytes(b"changed")
    assert (place / "adapter_config.json").read_bytes() == b"{}"
    assert install(adapter, pin(), folder) == place


def test_a_file_that_changed_since_it_was_resolved_is_noticed(
    adapter: ResolvedModel, folder: Path
) -> None:
    (Path(adapter.path) / "adapter_config.json").write_bytes(b"longer now")
    with pytest.raises(Failure) as caught:
        install(adapter, pin(), folder)
    assert caught.value.cause is Cause.DOWNLOAD_CORRUPT
    assert not adapter_path(folder, pin()).exists()


def test_what_is_not_loaded_any_more_goes_and_the_folder_stays(
    adapter: ResolvedModel, folder: Path
) -> None:
    for one in (pin(), pin(revision="b2"), pin("judge")):
        install(adapter, one, folder)
    remove_unused(folder, [pin(revision="b2")])
    assert [path.relative_to(folder).as_posix() for path in folder.glob("*/*")] == ["poet/b2"]
    remove_unused(folder, ())
    assert list(folder.iterdir()) == []


def test_a_folder_that_never_was_is_tidy(folder: Path) -> None:
    remove_unused(folder, ())
    assert not folder.exists()
