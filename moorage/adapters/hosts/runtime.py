"""Runtimes of hosts: start, observe, read logs, stop, and list the workloads of a ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from docker.errors import NotFound

from moorage.adapters.docker.client import daemon
from moorage.adapters.docker.containers import DockerRuntime, remove_container
from moorage.adapters.docker.helper import LABEL_HELPER
from moorage.adapters.hosts.observation import Observation
from moorage.adapters.hosts.processes import LABELS_FILE, STATE_FILE, ProcessRuntime
from moorage.adapters.hosts.supervisor import is_alive
from moorage.adapters.ledger import Ledger
from moorage.adapters.ray.applications import RayRuntime
from moorage.adapters.secrets import redact
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


class Runtime(Protocol):
    """Starts and stops engines on one host or cluster. Every method is idempotent."""

    def start(self, spec: ContainerSpec, secrets: Mapping[str, str]) -> Workload:
        """Start a container, or return the one that already runs for the same release."""
        ...

    def observe(self, workload: Workload) -> Observation:
        """The current state of a workload."""
        ...

    def logs(self, workload: Workload, tail: int) -> str:
        """The last lines of its log; empty when there is none.

        Runtimes of `runtime_for` redact the secrets that this process knows.
        """
        ...

    def stop(self, workload: Workload, grace_seconds: float) -> None:
        """End and remove it. A missing workload is no error."""
        ...


class RedactingRuntime:
    """A runtime whose logs are redacted: engines may write secrets.

    Args:
        runtime: The runtime that does the work.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.start, self.observe, self.stop = runtime.start, runtime.observe, runtime.stop

    def logs(self, workload: Workload, tail: int) -> str:
        """The last lines of its log, redacted."""
        return redact(self._runtime.logs(workload, tail))


def runtime_for(name: RuntimeName, address: str, settings: Settings) -> Runtime:
    """The runtime of that name on the host with that address."""
    if name == RuntimeName.PROCESS:
        return RedactingRuntime(ProcessRuntime(settings.root / "run"))
    if name == RuntimeName.RAY:
        return RedactingRuntime(RayRuntime(address, lambda: _config_lock(address, settings)))
    return RedactingRuntime(DockerRuntime(address))


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

    Args:
        place: A runtime of a host.
        ledger: Identity of the ledger; workloads of others are left out.
        settings: Of this machine.
        known: Workloads that should run there. A Ray cluster has no labels: only these are queried.

    Raises:
        Failure: When the host does not answer.
    """
    if place.runtime == RuntimeName.PROCESS:
        return tuple(_processes(settings.root / "run", ledger))
    if place.runtime == RuntimeName.RAY:
        return tuple(_application(one, settings) for one in known)
    with daemon(place.address, LIST_SECONDS) as client:
        own = client.api.containers(all=True, filters={"label": f"{LABEL_LEDGER}={ledger}"})
        helpers = client.api.containers(all=True, filters={"label": LABEL_HELPER})
    return tuple(_container(one) for one in (*own, *helpers))


def remove_workload(place: Place, found: ObservedWorkload, ledger: str, settings: Settings) -> None:
    """Remove an observed workload, unless another one has its name now.

    Raises:
        Failure: When the host does not answer.
    """
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
    runtime_for(place.runtime, place.address, settings).stop(workload, STOP_SECONDS)


def _application(workload: Workload, settings: Settings) -> ObservedWorkload:
    state = runtime_for(workload.runtime, workload.address, settings).observe(workload)
    return ObservedWorkload(
        name=workload.name,
        identity=workload.identity,
        release=workload.release,
        running=state.running,
        state=state.detail,
        since=datetime.now(UTC),
    )


def _container(listed: dict[str, Any]) -> ObservedWorkload:
    """A container from the daemon's list."""
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


def _processes(root: Path, ledger: str) -> Iterator[ObservedWorkload]:
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        labels, state = _read_json(folder / LABELS_FILE), _read_json(folder / STATE_FILE)
        if labels.get(LABEL_LEDGER) != ledger:
            continue
        with suppress(OSError):  # it was removed meanwhile
            pid, started = state.get("pid") or 0, state.get("started_at") or 0
            alive = bool(pid) and is_alive(pid, started)
            yield ObservedWorkload(
                name=folder.name,
                identity=f"{pid}@{started}",
                release=labels[LABEL_RELEASE],
                model=labels[LABEL_MODEL],
                running=alive,
                state=f"process {pid} runs" if alive else "the process has ended",
                since=datetime.fromtimestamp((folder / LABELS_FILE).stat().st_mtime, UTC),
            )


def _read_json(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        content = json.loads(path.read_text())
        return content if isinstance(content, dict) else {}
    return {}
