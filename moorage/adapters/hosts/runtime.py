"""Runtimes of hosts: start, observe, read logs, stop, and list the workloads of a ledger.

Each kind of runtime is imported at its first use: a command for a process needs no Docker client.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from moorage.adapters.hosts.observation import Observation
from moorage.adapters.system.settings import Settings
from moorage.engines.workload import Workload
from moorage.operations.reconcile.observed_workload import ObservedWorkload, Place
from moorage.spec import RuntimeName

if TYPE_CHECKING:
    from moorage.adapters.docker.containers import DockerRuntime
    from moorage.adapters.hosts.processes import ProcessRuntime
    from moorage.adapters.ray.applications import RayRuntime
    from moorage.engines.launch import ContainerSpec

    Runtime = DockerRuntime | ProcessRuntime | RayRuntime
    """Starts and stops engines on one host or cluster. Every method is idempotent: `start` keeps,
    updates or replaces a workload of the same release, and `stop` accepts a missing workload."""

CONFIG_WAIT_SECONDS = 180.0
"""How long to wait for another change of a cluster's config. A change takes a second or two; the
first change may wait for the start of Ray Serve."""

REMOVE_SECONDS, STOP_SECONDS = 15, 10.0


def runtime_for(one: ContainerSpec | Workload | Place, settings: Settings) -> Runtime:
    """The runtime of a planned container, a workload, or a place."""
    if one.runtime == RuntimeName.PROCESS:
        return _processes(settings)
    if one.runtime == RuntimeName.RAY:
        from moorage.adapters.ray.applications import RayRuntime  # noqa: PLC0415  (see above)

        return RayRuntime(one.address, lambda: _config_lock(one.address, settings))
    from moorage.adapters.docker.containers import DockerRuntime  # noqa: PLC0415  (see above)

    return DockerRuntime(one.address)


def _processes(settings: Settings) -> ProcessRuntime:
    from moorage.adapters.hosts.processes import ProcessRuntime  # noqa: PLC0415  (see above)

    return ProcessRuntime(settings.root / "run")


@contextmanager
def _config_lock(address: str, settings: Settings) -> Iterator[None]:
    """Hold the lock of a cluster's config among all processes of this ledger."""
    from moorage.adapters.ledger import Ledger  # noqa: PLC0415  (see above)

    with (
        closing(Ledger(settings.ledger)) as ledger,
        ledger.locks.holding(f"ray:{address}", wait_seconds=CONFIG_WAIT_SECONDS),
    ):
        yield


def other_listener(workload: Workload, settings: Settings) -> str:
    """What else listens at the endpoint of a process; Docker refuses a port that is taken."""
    if workload.runtime != RuntimeName.PROCESS:
        return ""
    return _processes(settings).other_listener(workload)


def list_workloads(
    place: Place, ledger: str, settings: Settings, known: Sequence[Workload] = ()
) -> tuple[ObservedWorkload, ...]:
    """All workloads of a place that carry the label of a ledger, and all helpers.

    A Ray cluster has no labels: only the `known` workloads, which should run there, are queried.
    Known processes are also found if another MOORAGE_HOME of the ledger started them.
    """
    if place.runtime == RuntimeName.PROCESS:
        return tuple(_processes(settings).workloads(ledger, known))
    if place.runtime == RuntimeName.RAY:
        return tuple(_application(one, settings) for one in known)
    from moorage.adapters.docker import container_states  # noqa: PLC0415  (see above)

    return container_states.list_own(place.address, ledger)


def observe_workloads(workloads: Sequence[Workload], settings: Settings) -> list[Observation]:
    """The states of workloads of one place; raises as the runtime's `observe`."""
    first = workloads[0]
    if first.runtime == RuntimeName.DOCKER:
        from moorage.adapters.docker import container_states  # noqa: PLC0415  (see above)

        return container_states.observe_containers(first.address, workloads)
    runtime = runtime_for(first, settings)
    return [runtime.observe(one) for one in workloads]


def remove_workload(place: Place, found: ObservedWorkload, ledger: str, settings: Settings) -> None:
    """Remove an observed workload, unless a foreign workload now has its name."""
    if found.helper:
        from docker.errors import NotFound  # noqa: PLC0415  (see above)

        from moorage.adapters.docker.client import daemon  # noqa: PLC0415  (see above)
        from moorage.adapters.docker.containers import remove_container  # noqa: PLC0415

        with daemon(place.address, REMOVE_SECONDS) as client, suppress(NotFound):
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
