"""The interface of runtimes: start, observe, read the log, and stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.hosts.observation import Observation
from moorage.adapters.hosts.processes import ProcessRuntime
from moorage.adapters.ledger import Ledger
from moorage.adapters.ray.applications import RayRuntime
from moorage.adapters.secrets.redacting import redact
from moorage.adapters.system.settings import Settings
from moorage.engines.launch import ContainerSpec, Workload
from moorage.spec import RuntimeName

CONFIG_WAIT_SECONDS = 180.0
"""How long to wait for another change of a cluster's config. It takes a second or two; the first
change may wait for Serve itself."""


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
