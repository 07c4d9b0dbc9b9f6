from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_SERVER_API_AUTH_STRING,
    PREFECT_SERVER_CORS_ALLOWED_ORIGINS,
    temporary_settings,
)

from moorage.adapters.prefect.api_login import (
    GUARDED_PATH,
    NO_AUTHORITY,
    current_login,
    login_of_own,
    require_login_of_other,
)
from moorage.common.failures import Cause, ExitCode, Failure
from tests.http_server import QuietHandler, serving
from tests.prefect_server import free_port

LOGIN = "admin:hush"
BASIC = f"Basic {b64encode(LOGIN.encode()).decode()}"


class Api(QuietHandler):
    """Answers as Prefect does, with or without an auth string."""

    asks = False

    def do_GET(self) -> None:
        known = self.path == f"/api{GUARDED_PATH}"
        admitted = not self.asks or self.headers["Authorization"] == BASIC
        self.send_response(404 if not known else 200 if admitted else 401)
        self.end_headers()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of the test's own, and no login in the settings."""
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    unset = {PREFECT_SERVER_API_AUTH_STRING: None, PREFECT_API_AUTH_STRING: None}
    with temporary_settings(unset):
        yield tmp_path


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(Api, "asks", False)
    with serving(Api, "0.0.0.0") as port:
        yield port


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0", "10.0.0.7", "gpu"])
def test_a_server_of_ours_has_a_login_that_stays(host: str, home: Path) -> None:
    login, is_new = login_of_own(host, no_login=False)
    assert is_new
    assert len(login.partition(":")[2]) >= 40
    assert login_of_own(host, no_login=False) == (login, False)
    assert (home / "api" / "login").read_text() == f"{login}\n"
    assert current_login() == login


def test_a_login_that_the_user_has_set_comes_first(home: Path) -> None:
    for setting in (PREFECT_SERVER_API_AUTH_STRING, PREFECT_API_AUTH_STRING):
        with temporary_settings({setting: LOGIN}):
            assert login_of_own("127.0.0.1", no_login=False) == (LOGIN, False)
            assert current_login() == LOGIN
    assert not (home / "api").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "gpu.example.com"])
def test_a_server_for_other_machines_is_not_started_without_a_login(host: str) -> None:
    with pytest.raises(Failure, match="everybody deploy") as caught:
        login_of_own(host, no_login=True)
    assert caught.value.cause is Cause.BAD_SETTING


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_on_this_machine_alone_the_login_may_be_left_out(host: str, home: Path) -> None:
    assert login_of_own(host, no_login=True) == ("", False)
    assert not (home / "api").exists()
    with (
        temporary_settings({PREFECT_SERVER_API_AUTH_STRING: LOGIN}),
        pytest.raises(Failure, match="there is a login") as caught,
    ):
        login_of_own(host, no_login=True)
    assert LOGIN not in str(caught.value)


@pytest.mark.parametrize("origins", ["*", "https://a.example, *"])
def test_pages_of_every_origin_are_not_let_in(origins: str) -> None:
    with (
        temporary_settings({PREFECT_SERVER_CORS_ALLOWED_ORIGINS: origins}),
        pytest.raises(Failure, match="PREFECT_SERVER_CORS_ALLOWED_ORIGINS"),
    ):
        login_of_own("127.0.0.1", no_login=False)


def test_an_open_api_on_the_network_is_not_served_through(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://0.0.0.0:{port}/api"
    for no_login in (False, True):
        with pytest.raises(Failure, match="answers everybody"):
            require_login_of_other(url, no_login=no_login)
    monkeypatch.setattr(Api, "asks", True)
    with temporary_settings({PREFECT_API_AUTH_STRING: LOGIN}):
        require_login_of_other(url, no_login=False)


def test_an_open_api_of_this_machine_is_served_through_only_when_that_is_wanted(port: int) -> None:
    url = f"http://127.0.0.1:{port}/api"
    with pytest.raises(Failure, match="every user of this machine") as caught:
        require_login_of_other(url, no_login=False)
    assert "--no-login" in caught.value.suggestion
    assert "PREFECT_SERVER_API_AUTH_STRING" in caught.value.suggestion
    require_login_of_other(url, no_login=True)


@pytest.mark.parametrize(("login", "reason"), [(None, "not set"), ("admin:no", "not the one")])
def test_a_login_that_is_missing_or_wrong_is_told(
    port: int, monkeypatch: pytest.MonkeyPatch, login: str | None, reason: str
) -> None:
    monkeypatch.setattr(Api, "asks", True)
    with (
        temporary_settings({PREFECT_API_AUTH_STRING: login}),
        pytest.raises(Failure, match=f"PREFECT_API_AUTH_STRING is {reason}"),
    ):
        require_login_of_other(f"http://127.0.0.1:{port}/api", no_login=False)


def test_the_login_of_another_server_is_not_tried(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is set for a server of ours is nothing that another one should learn."""
    monkeypatch.setattr(Api, "asks", True)
    with (
        temporary_settings({PREFECT_SERVER_API_AUTH_STRING: LOGIN}),
        pytest.raises(Failure, match="not set"),
    ):
        require_login_of_other(f"http://127.0.0.1:{port}/api", no_login=False)


def moorage(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    environment |= {"PREFECT_HOME": str(home / "prefect"), **more}
    command = [sys.executable, "-m", "moorage.cli.app", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_command_refuses_and_says_how(home: Path) -> None:
    reached = {"PREFECT_SERVER_API_HOST": "0.0.0.0", "PREFECT_SERVER_API_PORT": str(free_port())}
    done = moorage(home, "serve", "--no-login", **reached)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "Leave out --no-login" in done.stderr
    assert "may deploy through this API" in " ".join(done.stderr.split())


def test_the_login_is_shown_to_people_and_to_programs(home: Path) -> None:
    shown = moorage(home, "serve", "--show-login")
    assert shown.stdout == (home / "api" / "login").read_text()
    user, _, password = shown.stdout.strip().partition(":")
    as_json = json.loads(moorage(home, "serve", "--show-login", "--json").stdout)
    assert as_json == {"login": shown.stdout.strip(), "user": user, "password": password}


SIGN_IN = """\
import os, sys
from prefect.context import refresh_global_settings_context
from prefect.settings import get_current_settings
from moorage.adapters.prefect.api_login import sign_in
for url in sys.argv[1:]:
    os.environ.update(PREFECT_API_URL=url, PREFECT_API_SSL_CERT_FILE="/etc/own.pem")
    refresh_global_settings_context()
    sign_in()
    print(get_current_settings().api.ssl_cert_file)
"""


def test_clients_read_no_authorities_only_where_nothing_is_encrypted(home: Path) -> None:
    near = ["http://127.0.0.1:1/api", "http://localhost:1/api", "http://[::1]:1/api"]
    others = ["https://127.0.0.1/api", "http://prefect.example.com/api"]
    done = subprocess.run(
        [sys.executable, "-c", SIGN_IN, *near, *others],
        env=dict(os.environ, MOORAGE_HOME=str(home), PREFECT_HOME=str(home)),
        capture_output=True,
        text=True,
        check=True,
    )
    expected = [str(NO_AUTHORITY)] * len(near) + ["/etc/own.pem"] * len(others)
    assert done.stdout.split() == expected
    assert len(ssl.create_default_context(cafile=NO_AUTHORITY).get_ca_certs()) == 1
