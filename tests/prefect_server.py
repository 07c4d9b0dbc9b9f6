"""A real Prefect server for tests, and the few requests that tests send to its API."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from filelock import FileLock
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_LOGGING_TO_API_ENABLED,
    temporary_settings,
)

from moorage.adapters.prefect.home_server import QUIET
from moorage.adapters.prefect.new_database import provide_database
from tests.fork_server import PREFECT_SERVER, ForkedProcess, server_for
from tests.one_authority import one_authority
from tests.waiting import until

NO_EVENTS = {
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
}
"""Settings without events, which are a third of a deploy's cost for the server; for tests that
only read runs."""

RECORD = "runs-server.json"
END_SECONDS = 300
BUSY_SECONDS = 30
WORKERS = 8
"""Workers of one test run with ports of their own."""

_GIVEN = count(random.randrange(768))

ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


class PrefectApi:
    """A client of a server's API.

    Args:
        login: Its `user:password`; empty = it requires none.

    Attributes:
        url: Its address.
    """

    def __init__(self, url: str, login: str = "") -> None:
        self.url, self.login = url, login
        user, _, password = login.partition(":")
        auth = httpx.BasicAuth(user, password) if login else None
        self._client = httpx.Client(base_url=url, auth=auth, timeout=60)

    def is_healthy(self) -> bool:
        """Whether the server answers."""
        with suppress(httpx.HTTPError):
            return self._client.get("/health").status_code == 200
        return False

    def get(self, path: str) -> Any:
        """Send GET and return the content."""
        return _content(self._send("GET", path))

    def post(self, path: str, content: Any) -> Any:
        """Send POST and return the content."""
        return _content(self._send("POST", path, content))

    def patch(self, path: str, content: dict[str, Any]) -> None:
        """Send PATCH."""
        _content(self._send("PATCH", path, content))

    def delete(self, path: str) -> None:
        """Send DELETE."""
        _content(self._send("DELETE", path))

    def deployment(self, name: str) -> dict[str, Any]:
        """The deployment `flow/name`."""
        found: dict[str, Any] = self.get(f"/deployments/name/{name}")
        return found

    def has_deployment(self, name: str) -> bool:
        """Whether the deployment `flow/name` exists."""
        return self._send("GET", f"/deployments/name/{name}").status_code == 200

    def ask(self, deployment: str, parameters: dict[str, Any], **more: Any) -> httpx.Response:
        """Request a run of a deployment, as the UI and other programs do."""
        identity = self.deployment(deployment)["id"]
        content = {"parameters": parameters, **more}
        return self._send("POST", f"/deployments/{identity}/create_flow_run", content)

    def run(self, deployment: str, parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Run a deployment, wait for its end, and return the flow run."""
        return self.ended(_content(self.ask(deployment, parameters, **more))["id"])

    def ended(self, flow_run: str) -> dict[str, Any]:
        """Wait for the end of a flow run, and return the run."""
        return self.until(flow_run, ENDED)

    def has_ended(self, flow_run: str) -> bool:
        return self.get(f"/flow_runs/{flow_run}")["state"]["type"] in ENDED

    def until(self, flow_run: str, states: Collection[str]) -> dict[str, Any]:
        """Wait until a flow run is in one of some states."""

        def found() -> dict[str, Any] | None:
            run: dict[str, Any] = self.get(f"/flow_runs/{flow_run}")
            return run if run["state"]["type"] in states else None

        return until(found, pause=0.2)

    def cancel(self, flow_run: str) -> None:
        """Cancel a flow run, as the UI does."""
        state = {"type": "CANCELLING", "name": "Cancelling"}
        self.post(f"/flow_runs/{flow_run}/set_state", {"state": state})

    def log(self, flow_run: str) -> str:
        """The log of a flow run. It arrives a moment after the run has ended."""
        content = {"logs": {"flow_run_id": {"any_": [flow_run]}}, "sort": "TIMESTAMP_ASC"}
        return "\n".join(line["message"] for line in self.post("/logs/filter", content))

    def artifacts(self, flow_run: str) -> dict[str, dict[str, Any]]:
        """The artifacts of a flow run by key; results, which have no key, are left out."""
        content = {"artifacts": {"flow_run_id": {"any_": [flow_run]}}}
        found = self.post("/artifacts/filter", content)
        return {artifact["key"]: artifact for artifact in found if artifact["key"]}

    def _send(self, method: str, path: str, content: Any = None) -> httpx.Response:
        """Retry while the server returns 503, as Prefect's client does: its SQLite is locked."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            response = self._client.request(method, path, json=content)
            if response.status_code != 503 or time.monotonic() > deadline:
                return response
            time.sleep(0.2)


class PrefectServer(PrefectApi):
    """A server on this machine, and the environment with which commands use it."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__(environment["PREFECT_API_URL"], environment["PREFECT_API_AUTH_STRING"])
        self.environment = environment

    @property
    def settings(self) -> dict[Any, str]:
        """Prefect's settings for using it in this process."""
        return {PREFECT_API_URL: self.url, PREFECT_API_AUTH_STRING: self.login}


class StartedServer(PrefectServer):
    """A server on a free port, with its own database and login.

    Args:
        folder: Folder of all its files.
        settings: Variables of the server only.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] = {}) -> None:
        port = free_port()
        super().__init__(
            {
                **prepared_home(folder),
                "MOORAGE_HOME": str(folder / "moorage"),
                "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
                "PREFECT_API_AUTH_STRING": f"tests:{secrets.token_urlsafe(24)}",
                "PREFECT_API_SSL_CERT_FILE": str(one_authority(folder)),
                **QUIET,
                "PREFECT_CLI_PROMPT": "false",
            }
        )
        own = {**settings, "PREFECT_SERVER_API_AUTH_STRING": self.login}
        self._process = begin_server(port, {**os.environ, **self.environment, **own})
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def stop(self) -> None:
        """Stop it, by force if necessary."""
        self._client.close()
        end(self._process)

    def _wait(self) -> None:
        def ended() -> str | None:
            return None if self._process.poll() is None else "\n".join(self._process.communicate())

        until(self.is_healthy, unless=ended)


_OWN: pytest.StashKey[StartedServer] = pytest.StashKey()
_STARTED: list[StartedServer] = []


@pytest.fixture(scope="session")
def prefect_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> PrefectServer:
    """One server for the whole session, even if several conftests import this fixture."""
    stash = request.config.stash
    if _OWN not in stash:
        stash[_OWN] = StartedServer(tmp_path_factory.mktemp("prefect"))
        request.config.add_cleanup(stash[_OWN].stop)
    return stash[_OWN]


@pytest.fixture(scope="session")
def runs_server() -> PrefectServer:
    """One server for all processes of a test run, without events and automations.

    `end_runs_server` stops it, since the process that started it may finish before others.
    """
    record = _shared() / RECORD
    with FileLock(_shared() / "lock"):
        if not record.exists():
            _STARTED.append(StartedServer(_shared(), NO_EVENTS))
            (own,) = _STARTED
            record.write_text(json.dumps({"pid": own.pid, "environment": own.environment}))
    return PrefectServer(json.loads(record.read_text())["environment"])


@pytest.fixture(scope="module")
def flows_run_there(runs_server: PrefectServer) -> Iterator[PrefectServer]:
    """Run flows that a test calls in its own process on the server of the whole test run."""
    # Prefect would send unread log lines after the end of the server.
    with temporary_settings({**runs_server.settings, PREFECT_LOGGING_TO_API_ENABLED: False}):
        yield runs_server


def end_runs_server() -> None:
    """Stop the server that all processes of a test run share, if it was started."""
    record = _shared() / RECORD
    if record.exists():
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(json.loads(record.read_text())["pid"])
            process.terminate()
            psutil.wait_procs([process], timeout=END_SECONDS)


def _shared() -> Path:
    return Path(os.environ["MOORAGE_TESTS_SHARED"])


def begin_server(port: int, environment: Mapping[str, str]) -> ForkedProcess:
    """Start a server, and return at once."""
    words = ["--port", str(port)]
    return server_for(environment).begin(words, environment, program=PREFECT_SERVER)


def prepared_home(folder: Path) -> dict[str, str]:
    """Variables for a new home of Prefect in a folder, with the database that commands provide."""
    home = {"PREFECT_HOME": str(folder / "prefect")}
    return {**home, **provide_database(home)}


def free_port() -> int:
    """A free port, in a range that no other program picks ports from.

    Ray uses 10000 to 19999, workplaces the ports after that, outgoing connections those above. Each
    worker of the test run has its own part and gives no port twice before it has given all: a
    server that is killed and started again finds its port free.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
    own = range(32_000 + worker, 32_768, WORKERS)
    while True:
        port = own[next(_GIVEN) % len(own)]
        with suppress(OSError), socket.create_server(("", port)):
            return port


def end(
    process: subprocess.Popen[Any] | ForkedProcess, number: signal.Signals = signal.SIGTERM
) -> int:
    """Stop a process that leads its session, and kill its remaining descendants in any session."""
    descendants: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        descendants = psutil.Process(process.pid).children(recursive=True)
    if process.poll() is None:
        process.send_signal(number)
    try:
        return process.wait(END_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for one in descendants:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait()


def _content(response: httpx.Response) -> Any:
    assert response.is_success, f"{response.status_code} {response.text}"
    return response.json() if response.content else None
