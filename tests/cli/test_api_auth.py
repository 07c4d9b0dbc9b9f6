from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from prefect.settings import PREFECT_SERVER_API_AUTH_STRING, temporary_settings

from moorage.cli.api_auth import (
    GUARDED_PATH,
    require_auth_of_other,
    require_auth_of_own,
    share_auth,
)
from moorage.failures import Cause, ExitCode, Failure
from tests.prefect_server import PrefectServer, free_port

LOGIN = "admin:hush"


class Api(BaseHTTPRequestHandler):
    """Answers as Prefect does, with or without an auth string."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == f"/api{GUARDED_PATH}" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Api, "status", 200)
    with ThreadingHTTPServer(("0.0.0.0", 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://0.0.0.0:{server.server_address[1]}/api"
        server.shutdown()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "gpu.example.com"])
def test_a_server_for_other_machines_is_not_started_without_a_login(host: str) -> None:
    with pytest.raises(Failure, match="everybody deploy") as caught:
        require_auth_of_own(host)
    assert caught.value.cause is Cause.BAD_SETTING
    assert "PREFECT_SERVER_API_AUTH_STRING" in caught.value.suggestion
    with temporary_settings({PREFECT_SERVER_API_AUTH_STRING: LOGIN}):
        require_auth_of_own(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_on_this_machine_alone_no_login_is_needed(host: str) -> None:
    require_auth_of_own(host)
    require_auth_of_other(f"http://{f'[{host}]' if ':' in host else host}:1/api")


def test_an_open_api_on_the_network_is_not_served_through(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Failure, match="answers everybody"):
        require_auth_of_other(api)
    monkeypatch.setattr(Api, "status", 401)
    require_auth_of_other(api)


def test_the_flows_of_our_own_server_log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_AUTH_STRING", raising=False)
    with temporary_settings({PREFECT_SERVER_API_AUTH_STRING: LOGIN}):
        share_auth()
    assert os.environ["PREFECT_API_AUTH_STRING"] == LOGIN


def test_the_command_refuses_and_says_how(tmp_path: Path) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"},
        "PREFECT_HOME": str(tmp_path),
        "PREFECT_SERVER_API_HOST": "0.0.0.0",
        "PREFECT_SERVER_API_PORT": str(free_port()),
    }
    command = [sys.executable, "-m", "moorage.cli.app", "serve"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "--without-auth" in done.stderr


@pytest.mark.server
def test_a_real_prefect_server_with_an_auth_string_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", LOGIN)
    server = PrefectServer(tmp_path)
    try:
        assert httpx.get(f"{server.url}{GUARDED_PATH}").status_code == 401
        user, password = LOGIN.split(":")
        admitted = httpx.get(f"{server.url}{GUARDED_PATH}", auth=(user, password))
        assert admitted.status_code == 200
    finally:
        server.stop()
