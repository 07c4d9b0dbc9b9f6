"""Prefect's database without its migrations."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from moorage.adapters.prefect import new_database
from moorage.adapters.prefect.new_database import URLS, provide_database, schema_of
from tests.prefect_server import prepared_home

SCHEMA = Path(new_database.__file__).with_name(f"prefect-{version('prefect')}.sql")


def test_it_is_what_the_migrations_of_this_version_make(tmp_path: Path) -> None:
    migrated = schema_of(prepared_home(tmp_path / "migrated") / "prefect.db")
    assert parts(SCHEMA.read_text()) == parts(migrated), "run scripts/make_prefect_schema.py"
    provide_database({"PREFECT_HOME": str(tmp_path / "new")})
    assert schema_of(tmp_path / "new" / "prefect.db") == SCHEMA.read_text()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["prefect.db"]


def parts(schema: str) -> list[str]:
    """What a schema says, in an order of its own: that of constraints depends on Alembic."""
    return sorted(line.strip().rstrip(",").rstrip() for line in schema.splitlines())


def test_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "prefect.db").write_text("mine")
    provide_database({"PREFECT_HOME": str(tmp_path)})
    assert (tmp_path / "prefect.db").read_text() == "mine"


@pytest.mark.parametrize("name", URLS)
def test_where_another_one_is_configured_none_is_made(tmp_path: Path, name: str) -> None:
    provide_database({"PREFECT_HOME": str(tmp_path), name: "postgresql://"})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_left_to_the_server(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    provide_database({"PREFECT_HOME": str(tmp_path / "file")})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
