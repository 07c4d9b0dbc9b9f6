"""A ledger that is gone or empty is not taken for one that never was."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.check import problems_of_file
from moorage.adapters.ledger.copies import back_up, restore
from moorage.adapters.ledger.traces import MARKER
from moorage.common.failures import Cause, Failure
from tests.builders import NOON, REVISION, a_spec


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "ledger.db"


def opened(path: Path) -> Ledger:
    return Ledger(f"sqlite:///{path}")


def made(path: Path) -> None:
    """A ledger that was used, and closed in order."""
    with closing(opened(path)) as ledger:
        ledger.releases.begin(a_spec(), REVISION, "run-1")


def refused(path: Path) -> Failure:
    with pytest.raises(Failure) as caught:
        opened(path)
    assert str(path) in caught.value.detail
    assert "moorage ledger restore FILE" in caught.value.suggestion
    return caught.value


Lose = Callable[[Path], object]

LOSSES: dict[str, tuple[Lose, Cause]] = {
    "emptied": (lambda path: path.write_bytes(b""), Cause.LEDGER_DAMAGED),
    "removed": (lambda path: path.unlink(), Cause.LEDGER_UNAVAILABLE),
}


@pytest.mark.parametrize(("lose", "cause"), LOSSES.values(), ids=LOSSES)
def test_a_ledger_that_was_lost_is_not_begun_anew_until_its_trace_is_gone(
    path: Path, lose: Lose, cause: Cause
) -> None:
    made(path)
    lose(path)
    for _ in range(2):
        failure = refused(path)
        assert failure.cause is cause
        assert f"{path}{MARKER}" in failure.detail
    Path(f"{path}{MARKER}").unlink()
    with closing(opened(path)) as ledger:
        assert ledger.releases.models() == []


def a_backup(path: Path) -> Path:
    made(path)
    backup = path.with_name("monday.bak")
    back_up(f"sqlite:///{path}", backup)
    return backup


def what_was_committed(path: Path) -> Path:
    made(path)
    log = Path(f"{path}-wal")
    log.write_bytes(b"pages")
    return log


def engines(path: Path) -> Path:
    folder = path.parent / "run"
    (folder / "moorage-tiny.v1-r0-leader").mkdir(parents=True)
    return folder


@pytest.mark.parametrize("leave", [a_backup, what_was_committed, engines])
def test_an_empty_file_beside_any_trace_of_a_ledger_is_refused(
    path: Path, leave: Callable[[Path], Path]
) -> None:
    trace = leave(path)
    Path(f"{path}{MARKER}").unlink(missing_ok=True)
    path.write_bytes(b"")
    assert str(trace) in refused(path).detail
    assert path.read_bytes() == b""


def test_a_lost_ledger_comes_back_from_its_backup(path: Path) -> None:
    backup = a_backup(path)
    path.write_bytes(b"")
    refused(path)
    restore(f"sqlite:///{path}", backup, NOON)
    with closing(opened(path)) as ledger:
        assert ledger.releases.models() == ["tiny"]


def test_an_empty_file_without_a_trace_is_told_and_used(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    path.touch()
    (path.parent / "notes.txt").write_text("no ledger")
    assert problems_of_file(path) == ("it is empty (0 bytes)",)
    with caplog.at_level(logging.WARNING):
        made(path)
    assert "is empty (0 bytes): a new ledger is made in it" in caplog.text


def test_a_second_ledger_may_be_made_in_the_same_folder(path: Path) -> None:
    made(path)
    second = path.with_name("second.db")
    made(second)
    assert second.stat().st_size
