"""Processes of this machine are found by a variable as psutil finds them, only sooner."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.adapters.hosts import process_environment as processes
from moorage.adapters.hosts.process_environment import bearing

NAME = "MOORAGE_TEST_MARK"


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[int]:
    """A process that bears a mark."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", "print(flush=True); input()"],
        env={**os.environ, NAME: str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    process.stdout.readline()
    yield process.pid
    process.communicate(b"\n")


@pytest.mark.parametrize("linux", [True, False])
def test_a_process_is_found_by_its_whole_mark_and_no_other_is(
    marked: int, linux: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not linux:
        monkeypatch.setattr(processes, "PROCESSES", tmp_path / "none")
    assert bearing(NAME, str(tmp_path)) == [marked]
    assert bearing(NAME, str(tmp_path)[:-1]) == []
    assert bearing(NAME[1:], str(tmp_path)) == []
