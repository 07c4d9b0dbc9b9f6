"""Runtimes of hosts: start, observe, read logs, stop, and list the workloads of a ledger."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from docker.errors import NotFound

from moorage.adapters.docker.client import daemon
from moorage.adapters.docker.containers import DockerRuntime, remove_container
from moorage.adapters.docker.helper import LABEL_HELPER
from moorage.adapters.hosts.processes import ProcessRuntime
from moorage.adapters.ledger import Ledger
from moorage.adapters.ray.applications import RayRuntime
from moorage.adapters.system.settings import Settings
from moorage.engines.launch import LABEL_LEDGER, LABEL_MODEL, LABEL_RELEASE, ContainerSpec, Workload
from moorage.operations.reconcile.cluster_state import ObservedWorkload, Place
from moorage.spec import RuntimeName

CONFIG_WAIT_SECONDS = 180.0
"""How long to wait for another change of a cluster's config. It takes a second or two; the first
change may wait for Serve itself."""

LIST_SECONDS = 15
RUNS = {"running", "paused", "restarting"}
STOP_SECONDS = 10.0


Runtime = DockerRuntime | ProcessRuntime | RayRuntime
"""Starts and stops engines on one host or cluster. Every method is idempotent: `start` returns what
already runs for the same release, and to `stop` a missing workload is no error."""


def runtime_for(one: ContainerSpec | Workload | Place, settings: Settings) -> Runtime:
    """The runtime that starts, or has started, what is there."""
    if one.runtime == RuntimeName.PROCESS:
        return ProcessRuntime(settings.root / "run")
    if one.runtime == RuntimeName.RAY:
        return RayRuntime(one.address, lambda: _config_lock(one.address, settings))
    return DockerRuntime(one.address)


@contextmanager
def _config_lock(address: str, settings: Settings) -> Iterator[None]:
    """Hold the lock of a cluster's config among all processes of this ledger."""
    ledger = Ledger(settings.ledger)
    try:
        with ledger.locks.holding(f"ray:{address}", wait_seconds=CONFIG_WAIT_SECONDS):
            yield
    finally:
        ledger.close()


def list_workloads(
    place: Place, ledger: str, settings: Settings, known: Sequence[Workload] = ()
) -> tuple[ObservedWorkload, ...]:
    """Everything there that carries the label of a ledger, and all helpers.

    A Ray cluster has no labels: only the known workloads, which should run there, are queried.
    """
    if place.runtime == RuntimeName.PROCESS:
        return tuple(ProcessRuntime(settings.root / "run").workloads(ledger))
    if place.runtime == RuntimeName.RAY:
        return tuple(_application(one, settings) for one in known)
    with daemon(place.address, LIST_SECONDS) as client:
        own = client.api.containers(all=True, filters={"label": f"{LABEL_LEDGER}={ledger}"})
        helpers = client.api.containers(all=True, filters={"label": LABEL_HELPER})
    return tuple(_listed_container(one) for one in (*own, *helpers))


def remove_workload(place: Place, found: ObservedWorkload, ledger: str, settings: Settings) -> None:
    """Remove an observed workload, unless another one has its name now."""
    if found.helper:
        with daemon(place.address, LIST_SECONDS) as client, suppress(NotFound):
            remove_container(client.containers.get(found.identity))
        return
    workload = Workload(
        name=found.name,
        release=found.release,
        ledger=ledger,
        host=place.host,
        address=place.address,
        runtime=place.runtime,
        identity=found.identity,
    )
    runtime_for(place, settings).stop(workload, STOP_SECONDS)


def _application(workload: Workload, settings: Settings) -> ObservedWorkload:
    state = runtime_for(workload, settings).observe(workload)
    return ObservedWorkload(
        name=workload.name,
        identity=workload.identity,
        release=workload.release,
        running=state.running,
        state=state.detail,
        since=datetime.now(UTC),
    )


def _listed_container(listed: dict[str, Any]) -> ObservedWorkload:
    labels, state = listed.get("Labels") or {}, listed["State"]
    verb = "exited" if state == "exited" else f"is {state}"
    return ObservedWorkload(
        name=str((listed.get("Names") or ["/?"])[0]).lstrip("/"),
        identity=str(listed["Id"]),
        release=labels.get(LABEL_RELEASE, ""),
        model=labels.get(LABEL_MODEL, ""),
        running=state in RUNS,
        state=f"the container {verb} ({listed['Status']})",
        since=datetime.fromtimestamp(int(listed["Created"]), UTC),
        helper=labels.get(LABEL_HELPER, ""),
        fresh=state == "created",
    )
