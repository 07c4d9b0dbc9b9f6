"""The outage drill: what a deploy needs is killed, and reconciling once makes all good."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.adapters.ledger import Ledger
from tests.e2e.drill import Caller, Drill, show
from tests.e2e.nursery import ForkedWorkplace
from tests.e2e.outages import Postgres, Prefect, Server

pytestmark = [pytest.mark.process, pytest.mark.server]

STEPS = (
    *("release begun", "after the claim", "stage"),
    *("engine started", "before the record", "old one drained"),
)
QUICKLY = {"PREFECT_CLIENT_MAX_RETRIES": "1", "PREFECT_API_REQUEST_TIMEOUT": "10"}


class Place(ForkedWorkplace):
    """A workplace with its ledger in PostgreSQL, and a Prefect server of its own."""

    def __init__(self, folder: Path, model: Path, program: Path) -> None:
        self.postgres, self.prefect = Postgres(), Prefect(folder)
        more = {"MOORAGE_LEDGER_URL": self.postgres.url, **QUICKLY}
        super().__init__(folder, model, {**self.prefect.environment, **more})
        self.program = program

    @property
    def ledger(self) -> Ledger:
        self._ledger = self._ledger or Ledger(self.postgres.url)
        return self._ledger

    def close(self) -> None:
        super().close()
        self.prefect.kill()
        self.postgres.close()


@pytest.fixture(scope="module")
def drill(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_llama: Path,
    lifecycle_program: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Drill]:
    pytest.importorskip("psycopg", reason="pip install 'moorage[postgres]'", exc_type=ImportError)
    place = Place(tmp_path_factory.mktemp("outage"), tiny_llama, lifecycle_program)
    drill = Drill(place, lifecycle_program)
    yield drill
    place.close()
    show(request, drill)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("what", ["postgres"])
def test_a_server_that_a_deploy_needs(drill: Drill, what: str, step: str) -> None:
    """Whether the deploy fails or goes on, nothing is lost, and nothing is left."""
    place = drill.place
    assert isinstance(place, Place)
    server: Server = getattr(place, what)
    if place.ledger.releases.running(place.named("tiny")) is None:
        place.run("deploy", drill.spec())
    old, spec = drill.serving(), drill.spec()
    with Caller(old) as caller:
        ended = place.run("deploy", spec, code=None, point=step, victim=server.pid)
        server.start_again()
        took_over = drill.serving().id != old.id
        done = "" if took_over else drill.reconcile()
    if took_over:
        done = drill.reconcile()
    else:
        assert caller.refused == []
    assert caller.answered
    drill.leaks_nothing(drill.serving())
    again = place.json("deploy", spec)["outcome"]
    assert again == ("unchanged" if took_over else "completed")
    drill.leaks_nothing(drill.serving())
    drill.tell(what, f"{step} (exit {ended.returncode})", done, caller, again)
