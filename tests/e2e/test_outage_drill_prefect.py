"""The Prefect server is killed in each state of a deploy, which goes on without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.drill import Drill, Tell, on_processes, row
from tests.e2e.outage_drill import STEPS, an_outage
from tests.e2e.workplace import Workplace
from tests.outages import Prefect
from tests.prefect_server import PrefectApi

pytestmark = [pytest.mark.process, pytest.mark.server]

QUICKLY = {"PREFECT_CLIENT_MAX_RETRIES": "0", "PREFECT_API_REQUEST_TIMEOUT": "10"}
"""Else Prefect's client asks for a minute before it gives up."""

SHOWN_AS_RUNNING = {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prefect]:
    server = Prefect(tmp_path_factory.mktemp("server"))
    yield server
    server.kill()


@pytest.fixture(scope="module")
def drill(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_llama: Path,
    lifecycle_program: Path,
    server: Prefect,
) -> Iterator[Drill]:
    environment = {**server.environment, **QUICKLY, "MOORAGE_ORPHAN_SECONDS": "0"}
    place = Workplace(tmp_path_factory.mktemp("prefect"), tiny_llama, environment)
    yield on_processes(place, lifecycle_program)
    place.close()


@pytest.mark.parametrize("step", STEPS)
def test_the_prefect_server(
    drill: Drill, server: Prefect, step: str, record_property: Tell
) -> None:
    answer = an_outage(drill, "Prefect server", step, server.pid, server.start_again)
    api = PrefectApi(server.environment["PREFECT_API_URL"])
    assert api.post("/flow_runs/filter", SHOWN_AS_RUNNING) == []
    assert drill.serving().id == drill.place.releases()[0].id, "the deploy went on"
    row(record_property, *answer)
