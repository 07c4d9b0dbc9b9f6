"""Parts of drills: a deploy to which something happens, and what has to be so after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from moorage.engines.labels import LABEL_MODEL
from tests.e2e.conftest import container_engine
from tests.e2e.workplace import Workplace
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.sites import containers
from tests.fork_server import ForkedProcess

END_SECONDS = 240
"""By then a deploy has ended, whatever befell its host; each test bounds it more closely."""


def a_spec(place: Workplace, image: str, behaviour: str = "ok", **fields: Any) -> str:
    """A model for the first host alone, unless it says otherwise."""
    return str(place.spec(**pinned(image, behaviour) | fields))


def pinned(image: str, behaviour: str = "ok", host: str = "w1") -> dict[str, Any]:
    placement = {"accelerators": 0, "ram": "64MiB", "host_labels": {"host": host}}
    return {"engine": container_engine(image, behaviour), "placement": placement}


def befalls(
    place: Workplace, spec: str, when: Callable[[], bool], what: Callable[[], None]
) -> ForkedProcess:
    """Deploy, and let something happen once something else has."""
    running = place.start("deploy", spec, "--json")
    place.wait_until(lambda: when() or running.poll() is not None)
    what()
    return running


def ended(running: ForkedProcess) -> tuple[int, str]:
    """How a command ended, and all that it printed."""
    output, errors = running.communicate(timeout=END_SECONDS)
    return running.wait(), output + errors


@contextmanager
def within(seconds: float, what: str) -> Iterator[None]:
    """It may take so long; how long it took is printed."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    print(f"\n{what}: {took:.1f} s")
    assert took < seconds


def starting(host: FleetHost) -> Callable[[], bool]:
    """Its engine runs: between creating a container and starting it is a moment of its own."""
    return lambda: bool(host.daemon.client().containers.list(filters={"label": LABEL_MODEL}))


def deploys_again_and_leaves_nothing(place: Workplace, fleet: TestFleet, image: str) -> None:
    """The next deploy cleans up after the one that something befell, as reconciling would."""
    place.run("deploy", a_spec(place, image))
    here = [name for host in fleet.hosts for name in containers(host)]
    assert len(here) == 1
    assert {claim.release for claim in place.claims()} == {place.releases()[0].id}
    place.run("retire", place.named("tiny"))
    leaves_nothing(place, fleet)


def leaves_nothing(place: Workplace, fleet: TestFleet) -> None:
    assert place.is_clean()
    assert [name for host in fleet.hosts for name in containers(host)] == []
