"""Backups: taken while others write, checked, brought back, and never half."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.check import problems_of_content, problems_of_file
from moorage.adapters.ledger.copies import back_up, part_for, restore
from moorage.common.failures import Cause, Failure
from moorage.releases.states import ReleaseState
from tests.adapters.ledger.test_first_schema import RUNNING, fill, to_schema
from tests.builders import NOON, REVISION, a_claim, a_fleet, a_spec
from tests.e2e.workplace import REPOSITORY

POSTGRESQL = "postgresql+psycopg://moorage:topsecret@db/moorage"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "ledger.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def held(url: str) -> str:
    """A release that holds something."""
    with closing(Ledger(url)) as ledger:
        release = ledger.releases.begin(a_spec(), REVISION, "run-1")
        ledger.claims.commit(release, (a_claim(),), a_fleet())
    return release


@pytest.fixture
def backup(url: str, held: str, tmp_path: Path) -> Path:  # noqa: ARG001
    target = tmp_path / "backup.db"
    back_up(url, target)
    return target


@pytest.mark.usefixtures("held")
def test_a_backup_into_a_folder_that_is_not_there_is_not_the_ledgers_fault(
    url: str, tmp_path: Path
) -> None:
    with pytest.raises(Failure, match="nowhere is not there") as refused:
        back_up(url, tmp_path / "nowhere" / "ledger.db")
    assert refused.value.cause == Cause.BAD_SETTING


def test_a_backup_is_one_sound_file_with_all_that_is_committed(
    backup: Path, held: str, tmp_path: Path
) -> None:
    assert problems_of_file(backup) == ()
    assert backup.stat().st_mode & 0o077 == 0, "a record has the last lines of an engine's log"
    assert {one.name for one in tmp_path.iterdir()} == {"home", "backup.db"}
    with closing(Ledger(f"sqlite:///{backup}")) as copy:
        assert copy.releases.get(held).state == ReleaseState.SCHEDULED
        assert [claim.release for claim in copy.claims.all()] == [held]


def test_a_backup_is_taken_while_others_write(url: str, held: str, tmp_path: Path) -> None:
    ended = threading.Event()

    def write() -> None:
        with closing(Ledger(url)) as ledger:
            while not ended.is_set():
                ledger.releases.begin(a_spec(name="busy"), REVISION, "")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            back_up(url, tmp_path / f"{number}.db")
    finally:
        ended.set()
        writer.join()
    for number in range(5):
        assert problems_of_content(f"sqlite:///{tmp_path / f'{number}.db'}") == ()
    assert held


def test_what_is_restored_is_what_was_backed_up_and_the_rest_is_kept_beside_it(
    url: str, path: Path, held: str, backup: Path
) -> None:
    with closing(Ledger(url)) as ledger:
        identity = ledger.identity
        ledger.releases.end(held, ReleaseState.ERROR, "interrupted")
    kept = restore(url, backup, NOON)
    assert kept == path.with_name("ledger.db.before-20260301T120000")
    assert path.stat().st_mode & 0o077 == 0
    with closing(Ledger(url)) as ledger:
        assert ledger.releases.get(held).state == ReleaseState.SCHEDULED
        assert ledger.identity == identity
    with closing(Ledger(f"sqlite:///{kept}")) as before:
        assert before.releases.get(held).state == ReleaseState.ERROR


def test_a_damaged_ledger_is_replaced_by_its_backup(
    url: str, path: Path, held: str, backup: Path
) -> None:
    path.write_bytes(b"\0" * 8192)
    with pytest.raises(Failure) as caught:
        Ledger(url)
    assert caught.value.cause is Cause.LEDGER_DAMAGED
    assert str(path) in caught.value.detail
    assert "moorage ledger restore" in caught.value.suggestion
    restore(url, backup, NOON)
    with closing(Ledger(url)) as ledger:
        assert ledger.releases.get(held).id == held


def test_a_ledger_that_is_gone_comes_back(url: str, path: Path, held: str, backup: Path) -> None:
    path.unlink()
    assert restore(url, backup, NOON) is None
    with closing(Ledger(url)) as ledger:
        assert ledger.releases.get(held).id == held


@pytest.fixture
def killed(url: str, path: Path, backup: Path, tmp_path: Path) -> Path:  # noqa: ARG001
    """A copy of the ledger as a killed process leaves it: its last release is in the log alone."""
    copy = tmp_path / "killed" / path.name
    with closing(Ledger(url)) as ledger:
        ledger.releases.begin(a_spec(), REVISION, "run-2")
        shutil.copytree(path.parent, copy.parent)
    return copy


def test_the_log_of_a_ledger_that_is_gone_is_none_of_its_backup(
    killed: Path, held: str, backup: Path
) -> None:
    killed.unlink()
    restore(f"sqlite:///{killed}", backup, NOON)
    with closing(Ledger(f"sqlite:///{killed}")) as ledger:
        assert ledger.releases.ids("") == [held]


def test_a_restore_that_is_cut_leaves_the_whole_ledger(
    killed: Path, held: str, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(source: Path, target: Path, move: Callable[..., None] = os.replace) -> None:
        if target == killed:
            raise OSError("cut")
        move(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="cut"):
        restore(f"sqlite:///{killed}", backup, NOON)
    with closing(Ledger(f"sqlite:///{killed}")) as ledger:
        assert ledger.releases.ids("") == [held, "tiny.v2"]


def test_a_backup_of_an_older_schema_is_brought_up_to_date(url: str, tmp_path: Path) -> None:
    backup = tmp_path / "old.db"
    engine = create_engine(f"sqlite:///{backup}")
    to_schema(engine, "0001")
    with engine.begin() as connection:
        fill(connection)
    engine.dispose()
    restore(url, backup, NOON)
    with closing(Ledger(url)) as ledger:
        assert len(ledger.releases.transitions(RUNNING)) == 3


def refused(url: str, source: Path) -> Failure:
    with pytest.raises(Failure) as caught:
        restore(url, source, datetime.now(UTC))
    return caught.value


@pytest.mark.parametrize("content", [b"", b"no ledger", b"SQLite format 3\0" + b"x" * 5000])
def test_what_is_no_sound_ledger_is_not_restored(
    url: str, path: Path, held: str, tmp_path: Path, content: bytes
) -> None:
    source = tmp_path / "other"
    source.write_bytes(content)
    assert refused(url, source).cause is Cause.LEDGER_DAMAGED
    assert problems_of_file(path) == ()
    assert [one.name for one in path.parent.iterdir() if "part" in one.name] == []
    with closing(Ledger(url)) as ledger:
        assert ledger.releases.get(held).id == held


def test_a_backup_of_a_newer_moorage_is_not_restored(url: str, backup: Path) -> None:
    with closing(sqlite3.connect(backup)) as own, own:
        own.execute("UPDATE alembic_version SET version_num = '9999'")
    assert "9999" in refused(url, backup).detail


@pytest.mark.parametrize("linked", ["", "home", "home/ledger.db"])
def test_a_ledger_that_a_process_has_open_is_not_replaced(
    url: str, path: Path, backup: Path, tmp_path: Path, linked: str
) -> None:
    if linked:
        link = tmp_path / "link"
        link.symlink_to(tmp_path / linked)
        url = f"sqlite:///{link}{'/ledger.db' * link.is_dir()}"
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM gate');"
        "print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"open\n"
        failure = refused(url, backup)
        assert f"process {other.pid}" in failure.detail
        assert "moorage serve" in failure.suggestion
        other.communicate()
    assert restore(url, backup, NOON) == path.with_name("ledger.db.before-20260301T120000")


def test_a_backup_never_takes_the_place_of_a_file(url: str, backup: Path) -> None:
    before = backup.read_bytes()
    with pytest.raises(Failure, match="exists"):
        back_up(url, backup)
    assert backup.read_bytes() == before


def test_without_a_ledger_there_is_no_backup_of_it(url: str, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="is not there"):
        back_up(url, tmp_path / "backup.db")
    assert not (tmp_path / "backup.db").exists()


def test_of_a_damaged_ledger_no_backup_is_left(
    url: str,
    path: Path,
    held: str,  # noqa: ARG001
    tmp_path: Path,
) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)
    with pytest.raises(Failure) as caught:
        back_up(url, tmp_path / "backup.db")
    assert caught.value.cause is Cause.LEDGER_DAMAGED
    assert {one.name for one in tmp_path.iterdir()} == {"home"}


MAKE_A_PART = """
import sys
from pathlib import Path
from moorage.adapters.ledger.copies import part_for
part = part_for(Path(sys.argv[1]))
for suffix in ("", "-journal"):
    Path(f"{part}{suffix}").touch()
"""


def test_what_a_killed_backup_left_goes_with_the_next_one(
    url: str,
    held: str,  # noqa: ARG001
    tmp_path: Path,
) -> None:
    killed = tmp_path / "monday.db"
    subprocess.run([sys.executable, "-c", MAKE_A_PART, killed], check=True, cwd=REPOSITORY)
    assert len(list(tmp_path.glob("monday.db.part-*"))) == 2
    strangers = ("film.part-1", "ledger.db.part", "part-0123abcd-1-1.txt", "away.part-0123abcd-1-1")
    others = {part_for(tmp_path / "own.db"), *(tmp_path / name for name in strangers)}
    for one in others:
        one.touch()
    old = tmp_path / "old.part-0123abcd-1-1"
    old.touch()
    os.utime(old, (0, 0))
    back_up(url, tmp_path / "tuesday.db")
    assert set(tmp_path.iterdir()) == {tmp_path / "home", tmp_path / "tuesday.db", *others}


def test_postgresql_has_its_own_tools(tmp_path: Path) -> None:
    with pytest.raises(Failure) as caught:
        back_up(POSTGRESQL, tmp_path / "backup.db")
    assert "pg_dump" in caught.value.suggestion
    failure = refused(POSTGRESQL, tmp_path / "backup.db")
    assert "pg_restore" in failure.suggestion
    assert failure.cause is Cause.BAD_SETTING
    assert "topsecret" not in str(failure) + failure.suggestion


class TestContent:
    """Contradictions are listed, on either database."""

    @pytest.fixture
    def url(self, cluster: str) -> str:
        engine = create_engine(cluster, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text("DROP SCHEMA IF EXISTS content CASCADE"))
            connection.execute(text("CREATE SCHEMA content"))
        engine.dispose()
        return f"{cluster}&options=-csearch_path%3Dcontent"

    def test_a_ledger_that_agrees_with_itself_has_no_problems(self, url: str, held: str) -> None:
        assert held
        assert problems_of_content(url) == ()

    def test_claims_of_what_has_ended_are_told(self, url: str, held: str) -> None:
        with closing(Ledger(url)) as ledger:
            for state in ("downloading", "starting", "running", "stopping", "stopped"):
                ledger.releases.move(held, ReleaseState(state))
        assert problems_of_content(url) == ("tiny.v1 is stopped and still holds claims",)

    def test_a_state_that_the_log_does_not_lead_to_is_told(self, url: str, held: str) -> None:
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM transitions"))
        engine.dispose()
        assert problems_of_content(url) == (f"{held} is scheduled, but its log ends with pending",)
