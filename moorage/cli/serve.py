"""Serving the flows: what prefect.yaml describes, without a work pool or worker."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from moorage.cli.flows import out
from moorage.failures import Cause, Failure

START_SECONDS = 120
LOCAL_SERVER = "http://127.0.0.1:4200/api"


def serve_flows(limit: int) -> None:
    """Serve until interrupted; a server is started where none is configured."""
    with _server() as url:
        os.environ["PREFECT_API_URL"] = url
        # Prefect reads its settings when it is imported.
        from flows.serving import deployments_of, serve_all  # noqa: PLC0415

        deployments = deployments_of(Path.cwd() / "prefect.yaml")
        names = ", ".join(f"{item.flow_name}/{item.name}" for item in deployments)
        out.print(f"UI  {url.removesuffix('/api')}\nAPI {url}\nserving {names}", highlight=False)
        serve_all(deployments, limit)


@contextmanager
def _server() -> Iterator[str]:
    """The configured server, or one of our own that ends with us."""
    if url := os.environ.get("PREFECT_API_URL"):
        _wait(url, None)
        yield url
        return
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(LOCAL_SERVER, server)
        yield LOCAL_SERVER
    finally:
        server.terminate()
        server.wait(timeout=30)


def _wait(url: str, server: subprocess.Popen[bytes] | None) -> None:
    give_up = time.monotonic() + (START_SECONDS if server else 10)
    while time.monotonic() < give_up:
        if server is not None and server.poll() is not None:
            break
        try:
            if httpx.get(f"{url}/health", timeout=2).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.3)
    raise Failure(
        Cause.RUNTIME_UNAVAILABLE,
        f"the Prefect server at {url} does not answer",
        suggestion="Check PREFECT_API_URL, or that port 4200 is free on this machine.",
    )
