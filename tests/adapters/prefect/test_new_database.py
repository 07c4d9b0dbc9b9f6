"""Prefect's database without its migrations."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from moorage.adapters.prefect import new_database
from moorage.adapters.prefect.new_database import COMPLETE, URLS, provide_database, schema_of
from scripts.make_prefect_schema import make_database

SCHEMA = Path(new_database.__file__).with_name(f"prefect-{version('prefect')}.sql")


RANDOM = re.compile(r"'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'|'\d{4}-\d\d-\d\d [0-9:.]+'")
"""Identities and times of what stands there."""


def test_it_is_what_this_version_makes(tmp_path: Path) -> None:
    make_database(tmp_path / "made")
    made = schema_of(tmp_path / "made" / "prefect.db")
    assert parts(SCHEMA.read_text()) == parts(made), "run scripts/make_prefect_schema.py"
    assert provide_database({"PREFECT_HOME": str(tmp_path / "new")}) == COMPLETE
    assert schema_of(tmp_path / "new" / "prefect.db") == SCHEMA.read_text()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["prefect.db"]


def parts(schema: str) -> list[str]:
    """What a schema says, in an order of its own: that of constraints depends on Alembic."""
    lines = (RANDOM.sub("''", line) for line in schema.splitlines())
    return sorted(line.strip().rstrip(",").rstrip() for line in lines)


def test_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "prefect.db").write_text("mine")
    assert provide_database({"PREFECT_HOME": str(tmp_path)}) == {}
    assert (tmp_path / "prefect.db").read_text() == "mine"


@pytest.mark.parametrize("name", URLS)
def test_where_another_one_is_configured_none_is_made(tmp_path: Path, name: str) -> None:
    assert provide_database({"PREFECT_HOME": str(tmp_path), name: "postgresql://"}) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_left_to_the_server(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert provide_database({"PREFECT_HOME": str(tmp_path / "file")}) == {}
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
