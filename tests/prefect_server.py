"""A real Prefect server for tests, and the few questions that tests ask its API."""

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
"""A third of what a deploy costs the server, for tests that ask it for runs alone."""

RECORD = "runs-server.json"
END_SECONDS = 300
BUSY_SECONDS = 30
ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


class PrefectApi:
    """The API of a server, as any program uses it.

    Args:
        login: Its `user:password`; empty = it asks for none.

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
        """Read something."""
        return _content(self._send("GET", path))

    def post(self, path: str, content: Any) -> Any:
        """Create or search something."""
        return _content(self._send("POST", path, content))

    def patch(self, path: str, content: dict[str, Any]) -> None:
        """Change something."""
        _content(self._send("PATCH", path, content))

    def delete(self, path: str) -> None:
        """Take something away."""
        _content(self._send("DELETE", path))

    def deployment(self, name: str) -> dict[str, Any]:
        """A deployment by `flow/name`."""
        found: dict[str, Any] = self.get(f"/deployments/name/{name}")
        return found

    def has_deployment(self, name: str) -> bool:
        """Whether there is a deployment `flow/name`."""
        return self._send("GET", f"/deployments/name/{name}").status_code == 200

    def ask(self, deployment: str, parameters: dict[str, Any], **more: Any) -> httpx.Response:
        """Ask for a run of a deployment, as the UI and other programs do."""
        identity = self.deployment(deployment)["id"]
        content = {"parameters": parameters, **more}
        return self._send("POST", f"/deployments/{identity}/create_flow_run", content)

    def run(self, deployment: str, parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Run a deployment to its end and return the flow run."""
        return self.ended(_content(self.ask(deployment, parameters, **more))["id"])

    def ended(self, flow_run: str) -> dict[str, Any]:
        """Wait for the end of a flow run."""
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
        """The artifacts of a flow run by key; results, which have none, are left out."""
        content = {"artifacts": {"flow_run_id": {"any_": [flow_run]}}}
        found = self.post("/artifacts/filter", content)
        return {artifact["key"]: artifact for artifact in found if artifact["key"]}

    def _send(self, method: str, path: str, content: Any = None) -> httpx.Response:
        """Ask again while the server says 503, as Prefect's client does: its SQLite is locked."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            response = self._client.request(method, path, json=content)
            if response.status_code != 503 or time.monotonic() > deadline:
                return response
            time.sleep(0.2)


class PrefectServer(PrefectApi):
    """A server of this machine, and what a command needs to use it: its environment."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__(environment["PREFECT_API_URL"], environment["PREFECT_API_AUTH_STRING"])
        self.environment = environment

    @property
    def settings(self) -> dict[Any, str]:
        """What this process needs to use it."""
        return {PREFECT_API_URL: self.url, PREFECT_API_AUTH_STRING: self.login}


class StartedServer(PrefectServer):
    """A server on a free port, with its own database and login.

    Args:
        folder: Where it keeps everything.
        settings: Of the server alone.
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
        """Number of its process."""
        return self._process.pid

    def stop(self) -> None:
        """End it, come what may."""
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
    """One server for the whole session, in however many conftests this is imported."""
    stash = request.config.stash
    if _OWN not in stash:
        stash[_OWN] = StartedServer(tmp_path_factory.mktemp("prefect"))
        request.config.add_cleanup(stash[_OWN].stop)
    return stash[_OWN]


@pytest.fixture(scope="session")
def runs_server() -> PrefectServer:
    """One for all processes of a test run; it keeps no events and knows no automations.

    It is ended by `end_runs_server`, for who has begun it may be done before others are.
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
    """Flows that a test calls in its own process run on the server of the whole test run."""
    # Lines that nobody reads would be sent when the server has ended.
    with temporary_settings({**runs_server.settings, PREFECT_LOGGING_TO_API_ENABLED: False}):
        yield runs_server


def end_runs_server() -> None:
    """End the server that all processes of a test run share, if there is one."""
    record = _shared() / RECORD
    if record.exists():
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(json.loads(record.read_text())["pid"])
            process.terminate()
            psutil.wait_procs([process], timeout=END_SECONDS)


def _shared() -> Path:
    return Path(os.environ["MOORAGE_TESTS_SHARED"])


def begin_server(port: int, environment: Mapping[str, str]) -> ForkedProcess:
    """Start a server, and go on."""
    words = ["--port", str(port)]
    return server_for(environment).begin(words, environment, program=PREFECT_SERVER)


def prepared_home(folder: Path) -> dict[str, str]:
    """Variables for a new home of Prefect in a folder, with the database that commands give it."""
    home = {"PREFECT_HOME": str(folder / "prefect")}
    return {**home, **provide_database(home)}


def free_port() -> int:
    """A port on which nothing listens, in a range that nobody else takes one from by chance.

    Ray takes those from 10000 to 19999, workplaces what follows, outgoing connections the rest.
    """
    while True:
        port = random.randrange(32_000, 32_768)
        with suppress(OSError), socket.create_server(("", port)):
            return port


def end(
    process: subprocess.Popen[Any] | ForkedProcess, number: signal.Signals = signal.SIGTERM
) -> int:
    """End a process that leads its session; what it leaves behind, there or not, is killed."""
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
