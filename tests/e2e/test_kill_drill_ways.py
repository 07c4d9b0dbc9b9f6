"""The kill drill for other ways: stop-first, a second try, a download, a retire, a reconcile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.adapters.hosts.processes import MARK
from moorage.inventory.claims import Resource
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import SERVING
from tests.e2e.conftest import installed_engine
from tests.e2e.drill import Caller, Drill, Tell, on_processes, row
from tests.e2e.interrupted import (
    DOWNLOADING,
    HALFWAY,
    LOADING,
    RECONCILING,
    RETIRING,
    SECOND_TRY,
    STOP_FIRST,
    UNLOADING,
)
from tests.e2e.test_gateway import Gateway
from tests.e2e.workplace import Workplace
from tests.hub.server import Hub
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.process, pytest.mark.server]

FIXED = 20
"""Which port of the range a release has that cannot share it; others take the first ones."""


@pytest.fixture(scope="module")
def hub(tiny_llama: Path) -> Iterator[Hub]:
    """A hub with a repository for each point: what was fetched for one is there for all."""
    files = {file.name: file.read_bytes() for file in tiny_llama.iterdir()}
    with Hub(dict.fromkeys(map(repository, DOWNLOADING), files)) as hub:
        yield hub


def repository(point: str) -> str:
    return f"acme/{point.replace(' ', '-')}"


@pytest.fixture(scope="module")
def drill(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_llama: Path,
    lifecycle_program: Path,
    prefect_server: PrefectServer,
    hub: Hub,
) -> Iterator[Drill]:
    folder = tmp_path_factory.mktemp("drill")
    environment = {**prefect_server.environment, "MOORAGE_HUB_ENDPOINT": hub.url}
    place = Workplace(folder, tiny_llama, environment)
    yield on_processes(place, lifecycle_program)
    place.close()


@pytest.fixture
def others(drill: Drill) -> list[ReleaseRow]:
    """What serves before, one of a model that nothing of this concerns at least."""
    drill.deployed()
    return drill.place.ledger.releases.in_states(SERVING)


@pytest.fixture(scope="module")
def gateway(drill: Drill) -> Iterator[Gateway]:
    pytest.importorskip("envoy", reason="pip install '.[gateway]'")
    yield Gateway(drill.place)
    drill.place.run("gateway", "down")


@pytest.mark.parametrize("point", [*STOP_FIRST, *HALFWAY])
def test_a_deploy_that_stops_the_old_release_first(
    drill: Drill, others: list[ReleaseRow], gateway: Gateway, point: str, record_property: Tell
) -> None:
    """The old one may have stopped by then: it serves again, for those who waited, too."""
    port = drill.place.first_port + FIXED
    old, spec = drill.deployed("fixed", port=port), drill.spec("fixed", port=port)
    rest = _of_others(others, old)
    with Caller(old, gateway.url) as caller:
        drill.killed(point, "deploy", spec)
        done = drill.reconcile()
        assert drill.serving("fixed").id == old.id
        left = drill.leaks_nothing(*rest, old)
        repeated = drill.repeated(spec, new=False, recovery=f"stop-first: {done}")
    assert caller.refused == []
    answered = f"gateway: {caller.answered} of {caller.answered}"
    row(record_property, "stop-first deploy", point, "SIGKILL", done, left, answered, repeated)
    drill.leaks_nothing(*rest, drill.serving("fixed"))


@pytest.mark.parametrize("point", SECOND_TRY)
def test_a_deploy_that_tries_twice(
    drill: Drill,
    others: list[ReleaseRow],
    lifecycle_program: Path,
    point: str,
    record_property: Tell,
) -> None:
    engine = installed_engine(drill.place, lifecycle_program, "holds:1024")
    spec = drill.place.spec("twice", engine=engine)
    drill.killed(point, "deploy", spec)
    done = drill.reconcile()
    left = drill.leaks_nothing(*others)
    repeated = drill.repeated(spec, new=False)
    drill.leaks_nothing(*others, drill.serving("twice"))
    row(record_property, "second try", point, "SIGKILL", done, left, "-", repeated)
    drill.place.run("retire", drill.place.named("twice"))


@pytest.mark.parametrize("point", DOWNLOADING)
def test_a_deploy_that_downloads(
    drill: Drill, others: list[ReleaseRow], point: str, record_property: Tell
) -> None:
    """What came already stays, under a name that nobody takes for the model; a deploy goes on."""
    repo = repository(point)
    spec = drill.spec("fetched", source=f"hf://{repo}")
    drill.killed(point, "deploy", spec)
    done = drill.reconcile()
    shelf = drill.place.home / "models" / repo.replace("/", "--")
    assert [one.suffix for one in shelf.glob("[!.]*") if one.is_dir()] == [".partial"]
    repeated = drill.repeated(spec, new=False)
    left = drill.leaks_nothing(*others, drill.serving("fetched"))
    row(record_property, "download", point, "SIGKILL", done, left, "-", repeated)
    drill.place.run("retire", drill.place.named("fetched"))


@pytest.mark.parametrize("point", [*UNLOADING, *LOADING])
def test_a_model_that_sleeps_and_wakes(
    drill: Drill, others: list[ReleaseRow], point: str, record_property: Tell
) -> None:
    """Wherever it is killed, the model sleeps after one reconcile, and wakes when it is asked."""
    place, name = drill.place, drill.place.named("drowsy")
    old = drill.deployed("drowsy")
    if point in LOADING:
        place.run("unload", name)
    drill.killed(point, "load" if point in LOADING else "unload", name)
    done = drill.reconcile()
    [row_now] = place.releases("drowsy")[:1]
    assert (row_now.id, row_now.state) == (old.id, "asleep")
    resources = {claim.resource for claim in place.claims() if claim.release == old.id}
    assert resources == {Resource.PORT}
    assert old.workloads[0].name not in place.running()
    place.run("load", name, "--fleet", place.folder / "fleet.yaml")
    left = drill.leaks_nothing(*_of_others(others, old), drill.serving("drowsy"))
    with Caller(old) as caller:
        caller.wait()
    answered = f"{drill.answered(caller, old)} once woken"
    row(record_property, "sleep", point, "SIGKILL", done, left, answered, "woken")


@pytest.mark.parametrize("point", RECONCILING)
def test_a_reconcile(
    drill: Drill, others: list[ReleaseRow], point: str, record_property: Tell
) -> None:
    """It puts right what a kill has left, and is killed in the middle of that."""
    port = drill.place.first_port + FIXED
    old, spec = drill.deployed("fixed", port=port), drill.spec("fixed", port=port)
    rest = _of_others(others, old)
    if point == "restarting: stopped":
        for process in drill.place.processes():
            if process.environ()[MARK].endswith(old.workloads[0].name):
                process.kill()
    else:
        drill.killed("the new one started in its place", "deploy", spec)
    drill.reconcile_killed(point)
    done = drill.reconcile()
    assert drill.serving("fixed").id == old.id
    left = drill.leaks_nothing(*rest, old)
    with Caller(old) as caller:
        caller.wait()
    answered = f"{drill.answered(caller, old)} once reconciled"
    repeated = drill.repeated(spec, new=False, recovery=f"reconcile: {done}")
    row(record_property, "reconcile", point, "SIGKILL", done, left, answered, repeated)
    drill.leaks_nothing(*rest, drill.serving("fixed"))


@pytest.mark.parametrize("point", RETIRING)
def test_a_retire(
    drill: Drill, others: list[ReleaseRow], point: str, record_property: Tell
) -> None:
    drill.place.run("deploy", drill.spec("ends"))
    drill.killed(point, "retire", drill.place.named("ends"))
    done = drill.reconcile()
    left = drill.leaks_nothing(*others)
    again = drill.place.json("retire", drill.place.named("ends"))
    assert again["message"].endswith("was not running")
    row(record_property, "retire", point, "SIGKILL", done, left, "-", "was not running")


def _of_others(serving: list[ReleaseRow], old: ReleaseRow) -> list[ReleaseRow]:
    return [one for one in serving if one.model != old.model]
