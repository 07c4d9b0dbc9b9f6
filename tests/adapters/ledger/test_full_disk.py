"""A disk without room: the cause is named, and nothing is half written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.check import problems_of_content, problems_of_file
from moorage.adapters.ledger.copies import back_up
from moorage.common.failures import Cause, Failure
from moorage.releases.states import ReleaseState
from tests.builders import REVISION, a_claim, a_fleet, a_spec

SIZE = 2 * 1024**2


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk takes root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(disk: Path) -> Path:
    """Leave no room on a disk."""
    ballast = disk / "ballast"
    number = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while True:
            os.write(number, b"x" * 4096)
    os.close(number)
    return ballast


def come_and_go(ledger: Ledger, release: str) -> None:
    """Write until what the log of the database has to spare is used up, and further."""
    for _ in range(200):
        ledger.claims.commit(release, [a_claim(amount=1)] * 50, a_fleet())
        ledger.releases.end(release, ReleaseState.ERROR)
        release = ledger.releases.begin(a_spec(), REVISION, "")


def full(caught: pytest.ExceptionInfo[Failure], where: Path) -> None:
    assert caught.value.cause is Cause.DISK_FULL, caught.value
    assert str(where) in caught.value.detail
    assert "Free some space" in caught.value.suggestion


def test_what_has_no_room_is_refused_and_not_half_written(disk: Path) -> None:
    path = disk / "ledger.db"
    with closing(Ledger(f"sqlite:///{path}")) as ledger:
        release = ledger.releases.begin(a_spec(), REVISION, "")
        ballast = fill(disk)
        with pytest.raises(Failure) as caught:
            come_and_go(ledger, release)
        full(caught, path)
        before = {row.id: row.state for row in ledger.releases.of_model("tiny")}
        held = ledger.claims.all()
        ballast.unlink()
        assert {row.id: row.state for row in ledger.releases.of_model("tiny")} == before
        assert ledger.claims.all() == held
        assert len(held) in (0, 50)
        assert ledger.releases.begin(a_spec(name="other"), REVISION, "") == "other.v1"
    assert problems_of_file(path) == ()
    assert problems_of_content(f"sqlite:///{path}") == ()


def test_a_ledger_that_cannot_be_made_leaves_none_that_is_half_made(disk: Path) -> None:
    url = f"sqlite:///{disk / 'ledger.db'}"
    ballast = fill(disk)
    with pytest.raises(Failure) as caught:
        Ledger(url)
    full(caught, disk)
    ballast.unlink()
    with closing(Ledger(url)) as ledger:
        assert ledger.releases.begin(a_spec(), REVISION, "") == "tiny.v1"


def test_what_cannot_be_opened_on_a_full_disk_can_be_read_once_there_is_room(disk: Path) -> None:
    url = f"sqlite:///{disk / 'ledger.db'}"
    with closing(Ledger(url)) as ledger:
        release = ledger.releases.begin(a_spec(), REVISION, "")
    ballast = fill(disk)
    with pytest.raises(Failure) as caught:
        Ledger(url)
    full(caught, disk)
    ballast.unlink()
    with closing(Ledger(url)) as ledger:
        assert ledger.releases.get(release).id == release


def test_a_backup_without_room_leaves_nothing(disk: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    Ledger(url).close()
    fill(disk)
    with pytest.raises(Failure) as caught:
        back_up(url, disk / "backup.db")
    assert caught.value.cause is Cause.DISK_FULL
    assert {one.name for one in disk.iterdir()} == {"ballast"}
