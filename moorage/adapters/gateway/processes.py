"""The programs of a gateway: its service on this machine, and Envoy."""

import shutil
import sys
import time
from collections.abc import Collection
from functools import cached_property
from pathlib import Path

from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.envoys import (
    STOP_SECONDS,
    ContainerEnvoy,
    Envoy,
    HostEnvoy,
    ProcessEnvoy,
)
from moorage.adapters.hosts.processes import ProcessRuntime
from moorage.adapters.ledger import Ledger
from moorage.adapters.system.environment import given_environment
from moorage.common.values import Origin
from moorage.engines.api_key import secrets_of
from moorage.engines.flags import Variable
from moorage.engines.launch import planned_workload
from moorage.engines.workload import Workload
from moorage.gateway.gateway import GatewayOptions
from moorage.gateway.programs import service_program
from moorage.releases.states import KEPT

SERVICE = "moorage.adapters.gateway.service"
FOLDER = "gateways"
RUN = "run"
HANDED_ON = ("MOORAGE_", "PREFECT_", "DOCKER_")
"""Prefixes of the user's variables handed to the service, in addition to those of every process and
to its secrets."""


def gateway_lock(name: str) -> str:
    """Name of the ledger's lock that the service of a gateway holds while it runs."""
    return f"gateway {name}"


def service_secrets(ledger: Ledger, options: GatewayOptions) -> frozenset[str]:
    """Names of the secrets that the service reads: for TLS, and to wake and to ask models."""
    own = frozenset({options.tls_secret} if options.tls_secret else ())
    return own.union(*(secrets_of(row.plan) for row in ledger.releases.in_states(KEPT)))


class GatewayProcesses:
    """Starts and stops Envoy and the service of one gateway.

    Args:
        options: Options, which say where Envoy runs.
    """

    def __init__(self, home: Path, name: str, options: GatewayOptions | None = None) -> None:
        self._home, self._name = home.absolute(), name
        self.folder = self._home / FOLDER / name
        self._processes = ProcessRuntime(self.folder / RUN)
        self.envoy = self._chosen(options or GatewayOptions())

    def _chosen(self, options: GatewayOptions) -> Envoy:
        if options.host:
            return HostEnvoy(self._name, self.folder, options.host, options)
        if options.image:
            return ContainerEnvoy(self._name, self.folder, options)
        return ProcessEnvoy(self._name, self.folder, self._processes)

    def start_service(self, secrets: Collection[str] = (), *, renew: bool = False) -> None:
        """Start the service unless it runs.

        Its sockets are open to all users, so its folder is private before the service starts.

        Args:
            secrets: Names of secrets. The service gets those that are variables of this process,
                and keeps others that it has.
            renew: Whether a service that runs without these secrets as they are here is restarted.
                Only a person asks for that: other processes may themselves have older ones.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        found = {}
        if renew and self.other_variables(secrets):
            before = self._processes.variables(self._service_workload)
            found = {name: before[name] for name in secrets if name in before}
            self.stop_service()
        given = given_environment().items()
        found |= {n: v for n, v in given if n in secrets or n.startswith(HANDED_ON)}
        found["MOORAGE_HOME"] = str(self._home)
        # Passed as secrets, so no value is written to a file: the ledger's URL may have a password.
        variables = [
            Variable(name=name, secret=name, origin=Origin.DEFAULT, reason="as of the caller")
            for name in found
        ]
        self._processes.start(
            service_program(self._name, sys.executable, SERVICE, variables), found
        )

    def other_variables(self, secrets: Collection[str]) -> list[str]:
        """Variables of this process that the running service lacks, or has with another value."""
        there = self._processes.variables(self._service_workload)
        given = given_environment()
        own = sorted(given.keys() & set(secrets)) if there else []
        return [name for name in own if there.get(name) != given[name]]

    def service_log(self) -> str:
        """The last lines of the service's log."""
        return self._processes.logs(self._service_workload, 5)

    def stop_service(self) -> None:
        """Stop the service; Envoy continues to run."""
        self._processes.stop(self._service_workload, STOP_SECONDS)

    def stop_envoy(self, drain_seconds: float) -> int:
        """Stop Envoy once its requests have ended or time is up; returns how many were cut off."""
        open_requests = 0
        if self.envoy.runs() and (admin := Admin(self.envoy.folder.admin())).is_ready():
            admin.stop_listening()
            give_up = time.monotonic() + drain_seconds
            while (open_requests := admin.open_requests()) and time.monotonic() < give_up:
                time.sleep(0.1)
        self.envoy.stop()
        return open_requests

    def remove(self) -> None:
        """Remove the gateway's folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @cached_property
    def _service_workload(self) -> Workload:
        return planned_workload(service_program(self._name, sys.executable, SERVICE, ()))
