"""Locks of files: waiting for them, giving up, and folders that take none."""

import errno
from pathlib import Path

import pytest
from filelock import FileLock

from moorage.adapters.system import file_locks
from moorage.adapters.system.file_locks import file_lock, hold, locked
from moorage.adapters.system.parallel import deadline
from moorage.common.failures import Cause, Failure


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_locks, "TICK_SECONDS", 0.01)


def nothing() -> None: ...


def test_who_waits_for_a_lock_ticks_and_may_give_up(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        FileLock(path),
        pytest.raises(Failure, match="waiting took over"),
        hold(file_lock(path), deadline(0.02, "waiting")),
    ):
        pytest.fail("somebody else holds it")
    with hold(file_lock(path), nothing):
        pass


def test_a_lock_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    class Refused(FileLock):
        def _acquire(self) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

    with pytest.raises(Failure) as caught, hold(Refused(tmp_path / "x.lock"), lambda: None):
        pytest.fail("nobody holds it")
    assert caught.value.cause is Cause.STORE_UNWRITABLE


def test_a_lock_that_is_taken_is_not_ours_and_stays_taken(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path, 0) as first, locked(path, 0) as second:
        assert (first, second) == (True, False)
    with locked(path, 0) as again:
        assert again
