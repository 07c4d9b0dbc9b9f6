"""The seam to what starts engines: a runtime can start, observe, read the log, and stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.hosts.observation import Observation
from moorage.adapters.hosts.processes import ProcessRuntime
from moorage.adapters.ledger import Ledger
from moorage.adapters.ray.applications import RayRuntime
from moorage.adapters.secrets.redacting import redacted
from moorage.adapters.system.settings import Settings
from moorage.engines.launch import ContainerSpec, Workload
from moorage.spec import RuntimeName

CONFIG_WAIT_SECONDS = 180.0
"""How long another change of a cluster's config is waited for; one takes a second or two, but the
first may have to wait for Serve itself."""


class Runtime(Protocol):
    """What starts and stops engines on one host or cluster. Every method may be repeated safely."""

    def start(self, spec: ContainerSpec, secrets: Mapping[str, str]) -> Workload:
        """Start a container, or return the one that already runs for the same release."""
        ...

    def observe(self, workload: Workload) -> Observation:
        """What has become of a workload."""
        ...

    def logs(self, workload: Workload, tail: int) -> str:
        """The last lines of its log; empty when there is none.

        Those of `runtime_for` come without the secrets that this process knows.
        """
        ...

    def stop(self, workload: Workload, grace_seconds: float) -> None:
        """End and remove it; nothing happens when it is gone."""
        ...


class Discreet:
    """A runtime whose logs tell no secret: engines write what they please.

    Args:
        runtime: What it stands for.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.start, self.observe, self.stop = runtime.start, runtime.observe, runtime.stop

    def logs(self, workload: Workload, tail: int) -> str:
        """The last lines of its log, redacted."""
        return redacted(self._runtime.logs(workload, tail))


def runtime_for(name: RuntimeName, address: str, settings: Settings) -> Runtime:
    """The runtime of that name on the host with that address."""
    if name == RuntimeName.PROCESS:
        return Discreet(ProcessRuntime(settings.root / "run"))
    if name == RuntimeName.RAY:
        return Discreet(RayRuntime(address, lambda: _alone_on(address, settings)))
    return Discreet(DockerRuntime(address))


@contextmanager
def _alone_on(address: str, settings: Settings) -> Iterator[None]:
    """Be the only one of this ledger who changes the config of a cluster."""
    ledger = Ledger(settings.ledger)
    try:
        with ledger.locks.holding(f"ray:{address}", wait_seconds=CONFIG_WAIT_SECONDS):
            yield
    finally:
        ledger.close()
