from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, inspect, text

from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.database import (
    _connect,
    _schema,
    migrate_database,
    open_database,
    parsed_url,
)
from moorage.adapters.ledger.migrations import MIGRATIONS
from moorage.adapters.ledger.tables import METADATA, NEWEST, WHERE
from moorage.common.failures import Cause, Failure
from tests.adapters.ledger.team import Team
from tests.adapters.ledger.test_first_schema import to_schema
from tests.builders import REVISION, a_spec
from tests.e2e.workplace import REPOSITORY


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = open_database(url)
    yield engine
    engine.dispose()


def test_the_migrations_make_the_schema_that_the_tables_describe(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_the_two_partial_indexes_have_the_conditions_of_the_tables(engine: Engine) -> None:
    indexes = [one for table in METADATA.tables.values() for one in table.indexes]
    wanted = {one.name: _values_in(one.info[WHERE]) for one in indexes if WHERE in one.info}
    there = inspect(engine)
    found = {
        one["name"]: _values_in(one["dialect_options"][f"{engine.dialect.name}_where"])
        for table in ("releases", "claims")
        for one in there.get_indexes(table)
        if one["name"] in wanted
    }
    assert {"uq_releases_one_running", "uq_claims_one_port"} == wanted.keys()
    assert found == wanted


def _values_in(condition: object) -> list[str]:
    """PostgreSQL writes a condition in its own words; the values stay."""
    return re.findall(r"'(\w+)'", str(condition))


def test_the_migrations_are_one_line_with_one_head() -> None:
    script = ScriptDirectory(str(MIGRATIONS))
    assert script.get_heads() == [NEWEST]
    assert [r.revision for r in script.walk_revisions()][-1] == "0001"


@pytest.mark.usefixtures("engine")
def test_a_ledger_of_this_version_is_opened_without_alembic(url: str) -> None:
    program = (
        "import sys; from moorage.adapters.ledger import Ledger;"
        f" Ledger({url!r}).releases.models(); sys.exit('alembic' in sys.modules)"
    )
    opened = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=False)
    assert opened.returncode == 0


def test_opening_again_changes_nothing(engine: Engine, opened: Callable[[], Ledger]) -> None:
    opened().releases.begin(a_spec(), REVISION, "")
    assert opened().releases.next_id("tiny") == "tiny.v2"
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM gate")) == 1


def test_a_ledger_keeps_its_identity_and_no_other_has_it(
    opened: Callable[[], Ledger], tmp_path: Path
) -> None:
    with closing(Ledger(f"sqlite:///{tmp_path}/other.db")) as other:
        assert opened().identity == opened().identity != other.identity


def begin(number: int, url: str) -> str:
    with closing(Ledger(url)) as ledger:
        return ledger.releases.begin(a_spec(name=f"m{number}"), REVISION, "")


def test_several_processes_may_open_a_fresh_ledger_at_once(
    url: str, opened: Callable[[], Ledger], team: Team
) -> None:
    begun = team(begin, url)
    assert begun == [one.row.id for one in opened().overviews.current()]


def test_whoever_makes_the_file_first_only_delays_the_others(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    first = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
    first.execute("CREATE TABLE other (id INTEGER)")
    first.execute("BEGIN IMMEDIATE")
    threading.Timer(0.1, first.close).start()
    open_database(f"sqlite:///{file}").dispose()


def refused(url: str, cause: Cause = Cause.LEDGER_UNAVAILABLE) -> Failure:
    with pytest.raises(Failure) as caught:
        open_database(url)
    assert caught.value.cause is cause
    return caught.value


def test_the_folder_of_a_new_ledger_is_made(tmp_path: Path) -> None:
    open_database(f"sqlite:///{tmp_path}/a/b/ledger.db").dispose()
    assert (tmp_path / "a/b/ledger.db").exists()


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    file.write_text("something else altogether" * 100)
    assert str(file) in refused(f"sqlite:///{file}", Cause.LEDGER_DAMAGED).detail


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "file" in refused(f"sqlite:///{tmp_path}/file/ledger.db").detail


@pytest.mark.parametrize("url", ["ledger.db", "", "nosuch://host/db"])
def test_a_url_that_makes_no_sense_is_refused(url: str) -> None:
    assert refused(url).cause is Cause.LEDGER_UNAVAILABLE


def test_a_missing_driver_is_told_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    failure = refused("postgresql+psycopg://moorage:topsecret@db/moorage")
    assert ".[postgres]" in failure.suggestion + failure.detail
    assert "topsecret" not in str(failure)


def test_a_ledger_of_a_newer_moorage_is_refused(url: str) -> None:
    open_database(url).dispose()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    failure = refused(url)
    assert (
        "`pg_restore`" if url.startswith("postgresql") else "`moorage ledger restore FILE`"
    ) in (failure.suggestion)
    assert "does not know its schema" in failure.detail
    assert "9999" in failure.detail
    assert "newer moorage" in failure.suggestion


def test_a_ledger_on_a_server_is_migrated_on_request_only(url: str) -> None:
    """Others may use it with the version that made it."""
    on_server, engine = url.startswith("postgresql"), _connect(parsed_url(url))
    to_schema(engine, "0013")
    if on_server:
        failure = refused(url)
        assert f"its schema is 0013, and this moorage needs {NEWEST}" in failure.detail
        assert "`moorage ledger migrate`" in failure.suggestion
    else:
        open_database(url).dispose()
    assert _schema(engine) == ("0013" if on_server else NEWEST)
    migrate_database(url)
    assert _schema(engine) == NEWEST
    open_database(url).dispose()
    engine.dispose()
