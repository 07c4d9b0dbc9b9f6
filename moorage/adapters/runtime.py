"""The seam to what starts engines: a runtime can start, observe, read the log, and stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from moorage.adapters.docker import DockerRuntime
from moorage.adapters.ledger import Ledger
from moorage.adapters.observation import Observation
from moorage.adapters.process import ProcessRuntime
from moorage.adapters.ray_runtime import RayRuntime
from moorage.adapters.settings import Settings
from moorage.launch import ContainerSpec, Workload
from moorage.spec import RuntimeName

CONFIG_WAIT_SECONDS = 60.0
"""How long another change of a cluster's config is waited for; one takes a second or two."""


class Runtime(Protocol):
    """What starts and stops engines on one host or cluster. Every method may be repeated safely."""

    def start(self, spec: ContainerSpec, secrets: Mapping[str, str]) -> Workload:
        """Start a container, or return the one that already runs for the same release."""
        ...

    def observe(self, workload: Workload) -> Observation:
        """What has become of a workload."""
        ...

    def logs(self, workload: Workload, tail: int) -> str:
        """The last lines of its log; empty when there is none."""
        ...

    def stop(self, workload: Workload, grace_seconds: float) -> None:
        """End and remove it; nothing happens when it is gone."""
        ...


def runtime_for(name: RuntimeName, address: str, settings: Settings) -> Runtime:
    """The runtime of that name on the host with that address."""
    if name == RuntimeName.PROCESS:
        return ProcessRuntime(settings.root / "run")
    if name == RuntimeName.RAY:
        return RayRuntime(address, lambda: _alone_on(address, settings))
    return DockerRuntime(address)


@contextmanager
def _alone_on(address: str, settings: Settings) -> Iterator[None]:
    """Be the only one of this ledger who changes the config of a cluster."""
    ledger = Ledger(settings.ledger)
    try:
        with ledger.locks.holding(f"ray:{address}", wait_seconds=CONFIG_WAIT_SECONDS):
            yield
    finally:
        ledger.close()
