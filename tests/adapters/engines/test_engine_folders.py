from __future__ import annotations

from pathlib import Path

import pytest

from moorage.adapters.engines.engine_folders import (
    adapter_path,
    install_adapter,
    make_cache_folders,
    remove_unused_adapters,
)
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import ContainerSpec, Mount
from moorage.models.pin import AssetRole, Pin
from moorage.models.source import ModelFile, ResolvedModel
from tests.builders import a_container, a_model


def keeping(*pairs: tuple[Path, str]) -> ContainerSpec:
    mounts = tuple(
        Mount(source=str(source), target=target, read_only=False, kept=True)
        for source, target in pairs
    )
    return a_container(mounts=(Mount(source="/nowhere", target="/models/tiny"), *mounts))


def rights(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_any_user_of_a_container_may_write_and_nobody_else_of_the_host(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "tiny" / "vllm-cuda"
    make_cache_folders(keeping((folder, "/cache")))
    assert rights(folder) == 0o777
    assert rights(folder.parent) == 0o700


def test_what_is_kept_stays_when_the_next_container_starts(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "tiny" / "vllm-cuda"
    make_cache_folders(keeping((folder, "/cache")))
    (folder / "compiled").write_text("code")
    make_cache_folders(keeping((folder, "/cache")))
    assert (folder / "compiled").read_text() == "code"


def test_the_place_of_a_folder_inside_another_can_be_written_around(tmp_path: Path) -> None:
    outer, inner = tmp_path / "tiny" / "vllm-cuda", tmp_path / "tiny" / "vllm-cuda-plan"
    make_cache_folders(keeping((outer, "/cache"), (inner, "/cache/vllm/startup_plan")))
    assert rights(outer / "vllm") == rights(outer / "vllm" / "startup_plan") == 0o777
    assert rights(inner) == 0o777


def test_a_link_that_a_container_left_is_not_followed(tmp_path: Path) -> None:
    outer, inner = tmp_path / "tiny" / "vllm-cuda", tmp_path / "tiny" / "vllm-cuda-plan"
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    make_cache_folders(keeping((outer, "/cache")))
    (outer / "vllm").symlink_to(own)
    with pytest.raises(Failure, match="is a link") as caught:
        make_cache_folders(keeping((outer, "/cache"), (inner, "/cache/vllm/startup_plan")))
    assert caught.value.cause is Cause.STORE_UNWRITABLE
    assert rights(own) == 0o700
    assert not list(own.iterdir())


def test_a_folder_that_cannot_be_made_is_a_failure_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(Failure, match="cache/tiny") as caught:
        make_cache_folders(keeping((tmp_path / "cache" / "tiny" / "vllm", "/cache")))
    assert caught.value.cause is Cause.STORE_UNWRITABLE


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
    place = install_adapter(adapter, pin(), folder)
    assert place == folder / "poet" / "a1"
    (Path(adapter.path) / "adapter_config.json").write_bytes(b"changed")
    assert (place / "adapter_config.json").read_bytes() == b"{}"
    assert install_adapter(adapter, pin(), folder) == place


def test_a_file_that_changed_since_it_was_resolved_is_noticed(
    adapter: ResolvedModel, folder: Path
) -> None:
    (Path(adapter.path) / "adapter_config.json").write_bytes(b"longer now")
    with pytest.raises(Failure) as caught:
        install_adapter(adapter, pin(), folder)
    assert caught.value.cause is Cause.DOWNLOAD_CORRUPT
    assert not adapter_path(folder, pin()).exists()


def test_what_is_not_loaded_any_more_goes_and_the_folder_stays(
    adapter: ResolvedModel, folder: Path
) -> None:
    for one in (pin(), pin(revision="b2"), pin("judge")):
        install_adapter(adapter, one, folder)
    remove_unused_adapters(folder, [pin(revision="b2")])
    assert [path.relative_to(folder).as_posix() for path in folder.glob("*/*")] == ["poet/b2"]
    remove_unused_adapters(folder, ())
    assert list(folder.iterdir()) == []


def test_a_folder_that_never_was_is_tidy(folder: Path) -> None:
    remove_unused_adapters(folder, ())
    assert not folder.exists()
