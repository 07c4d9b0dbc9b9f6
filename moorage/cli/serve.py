"""Serving the flows: what prefect.yaml describes, without a work pool or worker."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import typer
from prefect.context import refresh_global_settings_context
from prefect.settings import get_current_settings

import flows
from flows.serving import deployments_of, serve_all
from moorage.adapters.policy import load_policy, load_site_fleet
from moorage.adapters.settings import Settings
from moorage.cli.api_auth import require_auth_of_other, require_auth_of_own, share_auth
from moorage.cli.output import out
from moorage.failures import Cause, Failure

PROJECT_FILE = "prefect.yaml"
START_SECONDS = 120.0
CONNECT_SECONDS = 10.0
"""How long a server that should be there already may take to answer."""

STOP_SECONDS = 30.0


def serve_flows(limit: int, *, without_auth: bool = False) -> None:
    """Serve until interrupted; a server is started where none is configured.

    Args:
        limit: Flow runs at the same time.
        without_auth: Whether an API that other machines reach may do without logins.

    Raises:
        Failure: `BAD_SETTING` when it does, and must not.
    """
    # Whatever ends this process, the blocks below are left in order, and the server ends too.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    project = project_file()
    deployments = deployments_of(project)
    _hand_on_policy(project.parent)
    if not without_auth:
        _require_auth()
    with _server() as url:
        names = ", ".join(f"{item.flow_name}/{item.name}" for item in deployments)
        out.print(f"UI  {url.removesuffix('/api')}\nAPI {url}\nserving {names}", highlight=False)
        serve_all(deployments, limit)


def project_file() -> Path:
    """The prefect.yaml of this folder, else the one of the checkout that moorage runs from.

    Raises:
        typer.BadParameter: When there is neither.
    """
    folders = [Path.cwd(), Path(flows.__file__).parents[1]]
    for folder in folders:
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
    raise typer.BadParameter(
        f"there is no {PROJECT_FILE} in {folders[0]}; start it in a folder that has one, such as a"
        " checkout of moorage"
    )


def _hand_on_policy(project: Path) -> None:
    """Have every run judged by the policy that counts here, wherever it is carried out.

    Raises:
        Failure: When its file cannot be read or trusted, or has mistakes.
    """
    os.environ.setdefault("MOORAGE_PROJECT", str(project.absolute()))
    settings = Settings()
    policy = load_policy(settings)
    load_site_fleet(policy, settings)
    if policy.file:
        os.environ["MOORAGE_POLICY"] = policy.file
    out.print(f"policy {policy.source}", highlight=False)


def _require_auth() -> None:
    configured = get_current_settings()
    if url := configured.api.url:
        require_auth_of_other(url)
    else:
        require_auth_of_own(configured.server.api.host)


@contextmanager
def _server() -> Iterator[str]:
    """The configured server, or one of our own that ends with us."""
    if url := get_current_settings().api.url:
        _wait(url, None)
        yield url
        return
    with _own_server() as url:
        os.environ["PREFECT_API_URL"] = url
        share_auth()
        refresh_global_settings_context()
        yield url


@contextmanager
def _own_server() -> Iterator[str]:
    address = get_current_settings().server.api
    _require_free(address.host, address.port)
    server = subprocess.Popen(
        [sys.executable, "-m", "prefect", "server", "start"],
        env={"PREFECT_SERVER_ANALYTICS_ENABLED": "false", **os.environ},
        stdout=subprocess.DEVNULL,
        # Ctrl-C is for us: the server stays until the runs have told it how they ended.
        start_new_session=True,
    )
    try:
        url = f"http://{address.host}:{address.port}/api"
        _wait(url, server)
        yield url
    finally:
        server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _require_free(host: str, port: int) -> None:
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise Failure(
            Cause.PORT_TAKEN,
            f"a Prefect server cannot listen on {host}:{port}: {error.strerror}",
            suggestion=f"If that is a Prefect server, set PREFECT_API_URL=http://{host}:{port}/api"
            " to use it; else choose another port with PREFECT_SERVER_API_PORT.",
        ) from error


def _wait(url: str, server: subprocess.Popen[bytes] | None) -> None:
    give_up = time.monotonic() + (START_SECONDS if server else CONNECT_SECONDS)
    while time.monotonic() < give_up:
        if server is not None and server.poll() is not None:
            raise Failure(Cause.SERVER_UNAVAILABLE, "the Prefect server ended while it started")
        try:
            if httpx.get(f"{url}/health", timeout=2).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.3)
    raise Failure(
        Cause.SERVER_UNAVAILABLE,
        f"the Prefect server at {url} does not answer",
        suggestion="Start it, check PREFECT_API_URL, or unset it: then a server is started here.",
    )
