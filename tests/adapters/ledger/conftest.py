from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from moorage.adapters.ledger import Ledger
from tests.adapters.ledger.team import Team
from tests.outages import Postgres


@pytest.fixture(scope="session")
def team() -> Iterator[Team]:
    """Calls a function in several processes at the same moment."""
    processes = Team()
    yield processes
    processes.end()


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """The URL of the first database of a throw-away PostgreSQL server."""
    advice = "psycopg is missing: pip install '.[postgres]'"
    pytest.importorskip("psycopg", reason=advice, exc_type=ImportError)
    postgres = Postgres()
    yield postgres.url
    postgres.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh, empty database of each kind (of PostgreSQL a schema, which is faster to make)."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    cluster: str = request.getfixturevalue("cluster")
    name = f"t{time.monotonic_ns()}"
    _execute(cluster, f"CREATE SCHEMA {name}")
    return f"{cluster}&options=-csearch_path%3D{name}"


@pytest.fixture
def opened(url: str) -> Iterator[Callable[[], Ledger]]:
    """Opens the ledger, any number of times."""
    ledgers: list[Ledger] = []

    def open_ledger() -> Ledger:
        ledgers.append(Ledger(url))
        return ledgers[-1]

    yield open_ledger
    for ledger in ledgers:
        ledger.close()


@pytest.fixture
def ledger(opened: Callable[[], Ledger]) -> Ledger:
    return opened()


def _execute(url: str, statement: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()
