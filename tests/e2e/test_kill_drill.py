"""The kill drill: a flow is killed at each of its steps, and reconciling once makes all good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.release import ReleaseRow
from moorage.states import SERVING
from tests.e2e.conftest import installed_engine
from tests.e2e.drill import Caller, Drill, show
from tests.e2e.interrupted import POINTS, RETIRING, SECOND_TRY, STOP_FIRST
from tests.e2e.nursery import ForkedWorkplace
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.process, pytest.mark.server]

TAKEN_OVER = list(POINTS)[list(POINTS).index("after the record") :]
"""Points at which the new release serves already, so that the old one may end."""

FIXED = 20
"""Which port of the range a release has that cannot share it; others take the first ones."""


@pytest.fixture(scope="module")
def drill(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_llama: Path,
    lifecycle_program: Path,
    prefect_server: PrefectServer,
    request: pytest.FixtureRequest,
) -> Iterator[Drill]:
    folder = tmp_path_factory.mktemp("drill")
    place = ForkedWorkplace(folder, tiny_llama, prefect_server.environment)
    drill = Drill(place, lifecycle_program)
    yield drill
    place.close()
    show(request, drill)


@pytest.fixture
def serves(drill: Drill) -> ReleaseRow:
    """An old release."""
    if drill.place.ledger.releases.running(drill.place.named("tiny")) is None:
        drill.place.run("deploy", drill.spec())
    return drill.serving()


@pytest.mark.parametrize("point", POINTS)
def test_a_deploy(drill: Drill, serves: ReleaseRow, point: str) -> None:
    spec, new = drill.spec(), point in TAKEN_OVER
    with Caller(serves) as caller:
        drill.killed(point, "deploy", spec)
        if not new:
            done = drill.reconcile()
    if new:
        caller.refused.clear()  # it may have ended once its successor served
        with Caller(drill.serving()) as successor:
            done = drill.reconcile()
        assert successor.refused == []
    assert caller.refused == []
    assert caller.answered
    drill.leaks_nothing(drill.serving())
    assert (drill.serving().id == serves.id) != new
    again = drill.place.json("deploy", spec)["outcome"]
    assert again == ("unchanged" if new else "completed")
    drill.leaks_nothing(drill.serving())
    drill.tell("deploy", point, done, caller, again)


@pytest.mark.parametrize("point", STOP_FIRST)
def test_a_deploy_that_stops_the_old_release_first(drill: Drill, point: str) -> None:
    """The old one may have stopped by then: it serves again."""
    port = drill.place.first_port + FIXED
    drill.place.run("deploy", drill.spec("fixed", port=port))
    others = drill.place.ledger.releases.in_states(SERVING)
    old, spec = drill.serving("fixed"), drill.spec("fixed", port=port)
    drill.killed(point, "deploy", spec)
    done = drill.reconcile()
    assert drill.serving("fixed").id == old.id
    drill.leaks_nothing(*others)
    with Caller(old) as caller:
        time.sleep(0.2)
    assert caller.answered
    assert caller.refused == []
    again = drill.place.json("deploy", spec)["outcome"]
    assert again == "completed"
    drill.tell("deploy (stop first)", point, done, None, again)
    drill.place.run("retire", drill.place.named("fixed"))


@pytest.mark.parametrize("point", SECOND_TRY)
def test_a_deploy_that_tries_twice(drill: Drill, lifecycle_program: Path, point: str) -> None:
    others = drill.place.ledger.releases.in_states(SERVING)
    engine = installed_engine(drill.place, lifecycle_program, "holds:1024")
    spec = drill.place.spec("twice", engine=engine)
    drill.killed(point, "deploy", spec)
    done = drill.reconcile()
    drill.leaks_nothing(*others)
    again = drill.place.json("deploy", spec)["outcome"]
    drill.leaks_nothing(*others, drill.serving("twice"))
    drill.tell("deploy (second try)", point, done, None, again)
    drill.place.run("retire", drill.place.named("twice"))


@pytest.mark.parametrize("point", RETIRING)
def test_a_retire(drill: Drill, point: str) -> None:
    others = drill.place.ledger.releases.in_states(SERVING)
    drill.place.run("deploy", drill.spec("ends"))
    drill.killed(point, "retire", drill.place.named("ends"))
    done = drill.reconcile()
    drill.leaks_nothing(*others)
    again = drill.place.json("retire", drill.place.named("ends"))["message"]
    assert again.endswith("was not running")
    drill.tell("retire", point, done, None, "was not running")


def test_nothing_is_left_to_do(drill: Drill) -> None:
    assert drill.reconcile() == "nothing to do"
