"""The Docker daemon of a host is killed in each step of a deploy to it.

Its containers outlive it (`live-restore`), so that the old release answers throughout. Those of a
daemon without that setting are ended when it starts again: reconciling starts the old one again.

The engines use the host's network. A daemon that starts writes its rules for published ports again,
and refuses connections to them for 0.1 to 0.2 s meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from moorage.adapters.docker.client import forget_clients
from moorage.releases.release_row import ReleaseRow
from tests.e2e.conftest import container_engine, prefect_server, tiny_llama
from tests.e2e.drill import Caller, Drill, Tell, row
from tests.e2e.outage_drill import an_outage, how_it_ended
from tests.e2e.workplace import Workplace
from tests.fleet.befalling import pinned
from tests.fleet.commands import missing, run
from tests.fleet.conftest import build_helper
from tests.fleet.fleet import PORTS, FleetHost, TestFleet
from tests.fleet.sites import HELPER, containers, write_fleet
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.docker, pytest.mark.fleet, pytest.mark.server]

__all__ = ["prefect_server", "tiny_llama"]

STEPS = (
    *("release begun", "survey", "after the claim", "image", "stage", "before the start"),
    *("workload written down", "verify", "measure", "before the record", "old one drained"),
)
"""Points of `tests.e2e.interrupted.POINTS`: all steps that ask the daemon, and what is around."""


class OnDocker(Drill):
    """A drill whose engines are containers of one host."""

    def __init__(self, place: Workplace, host: FleetHost, image: str) -> None:
        here = pinned(image)["placement"]
        super().__init__(place, lambda **more: open_engine(image, more), placement=here)
        self.host = host

    def running(self) -> set[str]:
        return set(containers(self.host))

    def listening(self) -> set[int]:
        low, _, high = PORTS.partition("-")
        heard = run(*self.host.link.entering, "ss", "-Hltn").stdout.splitlines()
        ports = {int(line.split()[3].rpartition(":")[2]) for line in heard}
        return {port for port in ports if int(low) <= port <= int(high)}

    def files(self) -> set[str]:
        store = self.host.daemon.folder / "store"
        return super().files() | {str(file) for file in self.half_files(store)}

    def folders(self, serving: tuple[ReleaseRow, ...]) -> set[str]:  # noqa: ARG002
        return set()


def open_engine(image: str, environment: dict[str, str]) -> dict[str, Any]:
    """`engine` of a spec: on the host's network, and whoever asks needs no key."""
    shared = {"container": {"network": "host"}, "api_key": "none"}
    return {**container_engine(image, **environment), **shared}


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path, prefect_server: PrefectServer
) -> Iterator[Workplace]:
    if reason := missing():
        pytest.skip(f"no test fleet: {reason}")
    build_helper()
    folder = tmp_path_factory.mktemp("docker")
    place = Workplace(folder, tiny_llama, prefect_server.environment)
    place.environment["MOORAGE_ORPHAN_SECONDS"] = "0"
    yield place
    place.close()


@pytest.fixture(scope="module", params=[True, False], ids=["live-restore", "mortal"])
def drill(
    request: pytest.FixtureRequest, place: Workplace, lifecycle_image: str
) -> Iterator[OnDocker]:
    forget_clients()  # another fleet may have had the same addresses, and other certificates
    images = (lifecycle_image, HELPER)
    with TestFleet(1, images=images, live_restore=request.param) as fleet:
        [host] = fleet.hosts
        write_fleet(place, fleet, "tls")
        yield OnDocker(place, host, lifecycle_image)
        place.run("retire", place.named("tiny"), code=None)
    forget_clients()


@pytest.mark.parametrize("drill", [True], indirect=True, ids=["live-restore"])
@pytest.mark.parametrize("step", STEPS)
def test_the_docker_daemon(drill: OnDocker, step: str, record_property: Tell) -> None:
    answer = an_outage(drill, "Docker daemon", step, pid(drill.host), lambda: restart(drill.host))
    row(record_property, *answer)


@pytest.mark.parametrize("drill", [False], indirect=True, ids=["mortal"])
@pytest.mark.parametrize("step", ["stage", "verify"])
def test_a_docker_daemon_that_takes_its_containers_with_it(
    drill: OnDocker, step: str, record_property: Tell
) -> None:
    """The old release ends when the daemon starts again, and is started by reconciling."""
    old, spec = drill.deployed(), drill.spec()
    ended = drill.place.run("deploy", spec, "--json", code=None, point=step, victim=pid(drill.host))
    restart(drill.host)
    done = drill.reconcile()
    assert "restart" in done
    assert drill.serving().id == old.id
    left = drill.leaks_nothing(old)
    drill.place.wait_until(lambda: answers(old))
    with Caller(drill.serving()) as now:
        now.wait()
    answered = f"{drill.answered(now, old)} once reconciled"
    repeated = drill.repeated(spec, new=False)
    drill.leaks_nothing(drill.serving())
    killed = "Docker daemon without live-restore"
    row(record_property, killed, step, how_it_ended(ended), done, left, answered, repeated)


def answers(row: ReleaseRow) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(f"{row.serving[0].endpoint}/health", trust_env=False).is_success
    return False


def pid(host: FleetHost) -> int:
    """Process number of its daemon."""
    return int((host.daemon.folder / "docker.pid").read_text())


def restart(host: FleetHost) -> None:
    """Start its daemon again after it was killed."""
    host.daemon.kill()
    host.daemon.start()
