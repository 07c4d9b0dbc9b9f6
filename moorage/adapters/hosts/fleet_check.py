"""Checking the hosts of a fleet: all at once, and then each from the others."""

from __future__ import annotations

import contextlib
import inspect
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from uuid import uuid4

from docker.errors import APIError, DockerException
from requests.exceptions import RequestException

from moorage.adapters.docker.client import connect
from moorage.adapters.docker.helper import LABEL_HELPER, MEMORY, run_helper
from moorage.adapters.hosts import reachability as greeting
from moorage.adapters.hosts.host_diagnosis import ERRORS, Visit, visit_host
from moorage.adapters.hosts.reachability import reach
from moorage.adapters.system.os_errors import plain
from moorage.adapters.system.parallel import all_at_once
from moorage.common.failures import Failure
from moorage.inventory.access import Access
from moorage.inventory.check import Check, HostChecks, broken
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.survey.judge import judge_bind, judge_neighbours

VISIT_SECONDS = 60.0
"""How long the look at one host may take; an image of the helper may have to be pulled."""

REACH_SECONDS = 45.0
NEIGHBOURS = 16
"""So many others a host asks at most: the next ones in the order of the fleet, in a circle."""

Listening = contextlib.AbstractContextManager[None]


STOP_SECONDS = 20
PYTHON = ("python3", "-I", "-c", inspect.getsource(greeting))


def check_fleet(fleet: Fleet, on_done: Callable[[], None] = lambda: None) -> tuple[HostChecks, ...]:
    """Look at every host, and at the ways between them.

    Nothing is left behind: helper containers are removed, and end by themselves where that fails.
    A port is taken for a moment at the end of each host's range, where claims are fewest.

    Args:
        fleet: The hosts.
        on_done: Told whenever one has been looked at.
    """
    outcomes = all_at_once(
        lambda host: visit_host(host, fleet), fleet.hosts, VISIT_SECONDS, on_done
    )
    pairs = zip(fleet.hosts, outcomes, strict=True)
    visits = [_visited(host, outcome) for host, outcome in pairs]
    with _listening([visit for visit in visits if visit.can_listen]) as listening:
        all_at_once(_ask_from_here, listening, REACH_SECONDS)
        all_at_once(lambda visit: _ask_others(visit, listening), listening, REACH_SECONDS)
    return tuple(
        HostChecks(host=visit.host.name, address=visit.host.address, checks=tuple(visit.checks))
        for visit in visits
    )


def _visited(host: Host, outcome: Visit | Exception) -> Visit:
    if isinstance(outcome, Visit):
        return outcome
    late = isinstance(outcome, TimeoutError) and not outcome.args
    why = f"the look at it took more than {VISIT_SECONDS:g} s" if late else repr(outcome)
    return Visit(host, [broken("reachability", why, "See whether Docker there is overloaded.")])


@contextlib.contextmanager
def _listening(visits: Sequence[Visit]) -> Iterator[list[Visit]]:
    """Have all listen; gives those that do. The others say why they do not."""
    doors = [_door(visit) for visit in visits]
    outcomes = all_at_once(lambda door: door.__enter__(), doors, REACH_SECONDS)
    triples = list(zip(visits, doors, outcomes, strict=True))
    for visit, _, outcome in triples:
        if isinstance(outcome, Exception):
            visit.checks.append(_cannot_listen(visit, outcome))
    try:
        yield [visit for visit, _, outcome in triples if outcome is None]
    finally:
        opened = [door for _, door, outcome in triples if outcome is None]
        all_at_once(lambda door: door.__exit__(None, None, None), opened, REACH_SECONDS)


def _door(visit: Visit) -> Listening:
    host = visit.host
    if host.access.is_remote:
        return listening_there(host.access, visit.image, host.bind, visit.port)
    return listening_here(host.bind, visit.port)


def _cannot_listen(visit: Visit, error: Exception) -> Check:
    told = plain(str(getattr(error, "explanation", None) or error))
    return broken(
        "bind",
        f"nothing can listen on {visit.host.bind}:{visit.port}: {told}",
        "`bind` has to be an address of that host, and the port free.",
    )


def _ask_from_here(visit: Visit) -> None:
    trouble = reach(visit.host.bind, visit.port)
    visit.checks.append(judge_bind(visit.host.bind, visit.port, trouble))


def _ask_others(visit: Visit, listening: Sequence[Visit]) -> None:
    """A host asks its neighbours; this machine has asked all of them already."""
    at = listening.index(visit)
    circle = [*listening[at + 1 :], *listening[:at]]
    others = [other for other in circle if other.host.access.is_remote][:NEIGHBOURS]
    if not visit.image or not others:
        return
    places = [(other.host.bind, other.port) for other in others]
    try:
        troubles = reach_from(visit.host.access, visit.image, places)
    except (Failure, *ERRORS) as error:
        troubles = [plain(str(error))] * len(others)
    names = [other.host.name for other in others]
    visit.checks.append(judge_neighbours(dict(zip(names, troubles, strict=True))))


@contextlib.contextmanager
def listening_here(bind: str, port: int) -> Iterator[None]:
    """Listen on this machine.

    Raises:
        OSError: When that address or port cannot be taken.
    """
    server = greeting.listen(bind, port)
    threading.Thread(target=greeting.greet, args=(server,), daemon=True).start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # closing alone would not wake who waits on it
        server.close()


@contextlib.contextmanager
def listening_there(access: Access, image: str, bind: str, port: int) -> Iterator[None]:
    """Listen on another host, on a port that Docker publishes as it does an engine's.

    The container ends and is removed by itself, should this machine lose the host.

    Raises:
        APIError: When Docker cannot publish it.
        DockerException: When the daemon does not answer.
    """
    container = connect(access, STOP_SECONDS).containers.create(
        image,
        entrypoint=[PYTHON[0]],
        command=[*PYTHON[1:], "listen", str(port)],
        name=f"moorage-check-{uuid4().hex[:12]}",
        labels={LABEL_HELPER: "check"},
        ports={f"{port}/tcp": (bind, port)},
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        mem_limit=MEMORY,
        auto_remove=True,
    )
    try:
        container.start()
        yield
    finally:
        with contextlib.suppress(DockerException, RequestException):
            _remove(access, str(container.id))


def reach_from(access: Access, image: str, places: Sequence[tuple[str, int]]) -> list[str]:
    """Why a host does not reach listeners; empty for those that it reaches.

    Args:
        access: The way to its daemon.
        image: The helper's image; it is there.
        places: Address and port of each listener.

    Raises:
        Failure: When the helper does not run.
        DockerException: When the daemon does not answer.
    """
    seconds = int(greeting.PATIENCE_SECONDS + greeting.CONNECT_SECONDS) + STOP_SECONDS
    command = (*PYTHON, "reach", json.dumps(places))
    said = run_helper(access, image, command, purpose="check", seconds=seconds)
    return [str(trouble) for trouble in json.loads(said.splitlines()[-1])]


def _remove(access: Access, identity: str) -> None:
    with contextlib.suppress(APIError):
        connect(access, STOP_SECONDS).api.remove_container(identity, force=True)
