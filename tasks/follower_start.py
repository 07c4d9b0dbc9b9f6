"""Waiting for the container that others of its replica need before they start."""

from __future__ import annotations

import socket
import time
from urllib.parse import urlsplit

from moorage.adapters.hosts.runtime import runtime_for
from moorage.common.failures import Cause
from moorage.engines.launch import ContainerSpec, planned_workload
from moorage.engines.registry import ENGINES
from moorage.readiness.diagnosis import diagnose
from moorage.spec import EngineName
from tasks.context import settings

LISTEN_SECONDS = 180.0
"""How long the head of a Ray cluster may take; where it installs Ray first, that is most of it."""

POLL_SECONDS = 0.5
CONNECT_SECONDS = 2.0
LOG_LINES = 5_000


def must_listen(spec: ContainerSpec, engine: EngineName, seconds: float = LISTEN_SECONDS) -> None:
    """Wait until a container takes connections on its port.

    Args:
        spec: The container; it was started.
        engine: Knows what its log gives away.
        seconds: How long to wait.

    Raises:
        Failure: `ENGINE_EXITED` when it ends first (or what its log says), `LOAD_TIMEOUT` when it
            never listens.
    """
    workload, give_up = planned_workload(spec), time.monotonic() + seconds
    runtime = runtime_for(spec.runtime, spec.address, settings())
    known = ENGINES[engine].log_causes
    while not _listens(spec.endpoint):
        seen = runtime.observe(workload)
        named = f"{spec.role} {spec.name} on {spec.host}"
        if not seen.running or seen.restarts:
            code = "" if seen.exit_code is None else f", exit code {seen.exit_code}"
            detail = f"{named}: {seen.detail}{code}"
            raise diagnose(runtime.logs(workload, LOG_LINES), known, Cause.ENGINE_EXITED, detail)
        if time.monotonic() > give_up:
            detail = f"{named}: does not listen on {spec.bind}:{spec.port} within {seconds:g} s"
            raise diagnose(runtime.logs(workload, LOG_LINES), known, Cause.LOAD_TIMEOUT, detail)
        time.sleep(POLL_SECONDS)


def _listens(endpoint: str) -> bool:
    where = urlsplit(endpoint)
    try:
        with socket.create_connection((where.hostname or "", where.port or 0), CONNECT_SECONDS):
            return True
    except OSError:
        return False
