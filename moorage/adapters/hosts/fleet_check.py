"""Checks of a fleet's hosts: each in parallel, then the connections between them."""

import contextlib
import inspect
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from moorage.adapters.docker import sdk
from moorage.adapters.docker.client import connect
from moorage.adapters.docker.helper_job import (
    PYTHON,
    HelperJob,
    helper_config,
    helper_name,
    run_helper,
)
from moorage.adapters.hosts import reachability as greeting
from moorage.adapters.hosts.host_diagnosis import HostDiagnosis, diagnose_host
from moorage.adapters.hosts.remote_host import ERRORS
from moorage.adapters.system.os_errors import innermost_message
from moorage.adapters.system.parallel import map_parallel
from moorage.inventory.checks import (
    HostChecks,
    broken,
    broken_by,
    judge_bind,
    judge_names,
    judge_neighbours,
)
from moorage.inventory.fleet import Fleet, Host

DIAGNOSIS_SECONDS = 60.0
"""Limit for one host; the helper's image may have to be pulled."""

REACH_SECONDS = 45.0
NEIGHBOURS = 16
"""Limit of the hosts that a host connects to: the next ones in the fleet, in a circle."""

STOP_SECONDS = 20
PROGRAM = (*PYTHON, inspect.getsource(greeting))


def check_fleet(fleet: Fleet, on_done: Callable[[], None] = lambda: None) -> tuple[HostChecks, ...]:
    """Check every host, and the connections between hosts.

    Helper containers are removed, or exit by themselves if the removal fails. The check briefly
    uses a port at the end of each host's range, where claims are fewest.
    """
    outcomes = map_parallel(
        lambda host: diagnose_host(host, fleet), fleet.hosts, DIAGNOSIS_SECONDS, on_done
    )
    diagnoses = []
    for host, outcome in zip(fleet.hosts, outcomes, strict=True):
        if not isinstance(outcome, HostDiagnosis):
            fix = "See whether Docker there is overloaded."
            check = broken_by("reachability", outcome, DIAGNOSIS_SECONDS, fix)
            outcome = HostDiagnosis(host, [check])
        diagnoses.append(outcome)
    doubles = judge_names({one.host.name: one.daemon for one in diagnoses})
    for one in diagnoses:
        one.checks += [doubles[one.host.name]] if one.host.name in doubles else []
    able = [one for one in diagnoses if one.port and (one.image or not one.host.access.is_remote)]
    with _listening(able) as listening:
        map_parallel(_reach_locally, listening, REACH_SECONDS)
        map_parallel(lambda one: _reach_neighbours(one, listening), listening, REACH_SECONDS)
    return tuple(
        HostChecks(host=one.host.name, address=one.host.address, checks=tuple(one.checks))
        for one in diagnoses
    )


@contextlib.contextmanager
def _listening(diagnoses: Sequence[HostDiagnosis]) -> Iterator[list[HostDiagnosis]]:
    """Start listeners on all hosts. Yields the hosts that listen; others get a failed check."""
    listeners = [
        _listen_remotely(one.host, one.image, one.port)
        if one.host.access.is_remote
        else listen_locally(one.host.bind, one.port)
        for one in diagnoses
    ]
    outcomes = map_parallel(lambda listener: listener.__enter__(), listeners, REACH_SECONDS)
    opened = {}
    for diagnosis, listener, outcome in zip(diagnoses, listeners, outcomes, strict=True):
        if isinstance(outcome, Exception):
            reason = innermost_message(str(getattr(outcome, "explanation", None) or outcome))
            found = f"nothing can listen on {diagnosis.host.bind}:{diagnosis.port}: {reason}"
            fix = "`bind` has to be an address of that host, and the port free."
            diagnosis.checks.append(broken("bind", found, fix))
        else:
            opened[diagnosis] = listener
    try:
        yield list(opened)
    finally:
        ending = tuple(opened.values())
        map_parallel(lambda listener: listener.__exit__(None, None, None), ending, REACH_SECONDS)


def _reach_locally(diagnosis: HostDiagnosis) -> None:
    trouble = greeting.reach(diagnosis.host.bind, diagnosis.port)
    diagnosis.checks.append(judge_bind(diagnosis.host.bind, diagnosis.port, trouble))


def _reach_neighbours(diagnosis: HostDiagnosis, listening: Sequence[HostDiagnosis]) -> None:
    at = listening.index(diagnosis)
    circle = [*listening[at + 1 :], *listening[:at]]
    others = [other for other in circle if other.host.access.is_remote][:NEIGHBOURS]
    if not diagnosis.image or not others:
        return
    places = [(other.host.bind, other.port) for other in others]
    seconds = int(greeting.PATIENCE_SECONDS + greeting.CONNECT_SECONDS) + STOP_SECONDS
    job = HelperJob(diagnosis.image, (*PROGRAM, "reach", json.dumps(places)), "check", seconds)
    try:
        output = run_helper(diagnosis.host.access, job)
        troubles = [str(trouble) for trouble in json.loads(output.splitlines()[-1])]
    except ERRORS as error:
        troubles = [innermost_message(str(error))] * len(others)
    names = (other.host.name for other in others)
    diagnosis.checks.append(judge_neighbours(dict(zip(names, troubles, strict=True))))


@contextlib.contextmanager
def listen_locally(bind: str, port: int) -> Iterator[None]:
    """Listen on this machine during the block."""
    server = greeting.listen(bind, port)
    threading.Thread(target=greeting.greet, args=(server,), daemon=True).start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # `close` alone would not wake the waiting thread
        server.close()


@contextlib.contextmanager
def _listen_remotely(host: Host, image: str, port: int) -> Iterator[None]:
    """Listen on a remote host, on a port that Docker publishes like an engine's.

    If this machine loses the host, the container exits by itself and Docker removes it.
    """
    config, opened = helper_config(image, "check", (*PROGRAM, "listen", str(port))), f"{port}/tcp"
    config["ExposedPorts"] = {opened: {}}
    config["HostConfig"] |= {
        "NetworkMode": "default",
        "PortBindings": {opened: [{"HostIp": host.bind, "HostPort": str(port)}]},
        "AutoRemove": True,
    }
    api: Any = connect(host.access, STOP_SECONDS).api
    container = api.create_container_from_config(config, helper_name("check"))["Id"]
    try:
        api.start(container)
        yield
    finally:
        with contextlib.suppress(*sdk.DAEMON_ERRORS):
            connect(host.access, STOP_SECONDS).api.remove_container(container, force=True)
