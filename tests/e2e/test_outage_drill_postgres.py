"""The ledger's database is killed (SIGKILL, postmaster and children) in each state of a deploy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.adapters.ledger import Ledger
from tests.e2e.drill import Drill, Tell, on_processes, row
from tests.e2e.outage_drill import STEPS, an_outage
from tests.e2e.workplace import Workplace
from tests.outages import Postgres
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.process, pytest.mark.server]


class Place(Workplace):
    """A workplace with its ledger in PostgreSQL."""

    def __init__(self, folder: Path, model: Path, environment: dict[str, str]) -> None:
        self.postgres = Postgres()
        more = {"MOORAGE_LEDGER_URL": self.postgres.url}
        super().__init__(folder, model, {**environment, **more})

    @property
    def ledger(self) -> Ledger:
        self._ledger = self._ledger or Ledger(self.postgres.url)
        return self._ledger

    def close(self) -> None:
        super().close()
        self.postgres.close()


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path, prefect_server: PrefectServer
) -> Iterator[Place]:
    pytest.importorskip("psycopg", reason="pip install '.[postgres]'", exc_type=ImportError)
    place = Place(tmp_path_factory.mktemp("postgres"), tiny_llama, prefect_server.environment)
    yield place
    place.close()


@pytest.fixture(scope="module")
def drill(place: Place, lifecycle_program: Path) -> Drill:
    return on_processes(place, lifecycle_program)


@pytest.mark.parametrize("step", STEPS)
def test_the_database_of_the_ledger(
    place: Place, drill: Drill, step: str, record_property: Tell
) -> None:
    server = place.postgres
    row(record_property, *an_outage(drill, "PostgreSQL", step, server.pid, server.start_again))
