from __future__ import annotations

from pathlib import Path

import pytest

from moorage.adapters.engines.engine_caches import make_cache_folders
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import ContainerSpec, Mount
from tests.builders import a_container


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


def test_a_folder_that_cannot_be_made_is_a_failure_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(Failure, match="cache/tiny") as caught:
        make_cache_folders(keeping((tmp_path / "cache" / "tiny" / "vllm", "/cache")))
    assert caught.value.cause is Cause.STORE_UNWRITABLE
