"""`moorage serve`: what it says about its server, and which server it takes for its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO

import httpx
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings
from rich.console import Console

from moorage.cli import serve
from moorage.common.failures import Failure
from tests.http_server import QuietHandler, serving

LOGIN = "moorage:hush-hush"


class Healthy(QuietHandler):
    """Whatever it is, it says that it is well."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()


@pytest.fixture
def url() -> Iterator[str]:
    """An API that this process answers for."""
    with serving(Healthy) as port:
        yield f"http://127.0.0.1:{port}/api"


@pytest.mark.parametrize(
    ("is_terminal", "is_new", "login", "printed"),
    [
        (True, True, LOGIN, True),
        (True, False, LOGIN, False),
        (False, True, LOGIN, False),
        (True, True, "", False),
    ],
)
def test_a_new_login_is_printed_once_and_into_no_log(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, is_new: bool, login: str, printed: bool
) -> None:
    text = StringIO()
    console = Console(file=text, force_terminal=is_terminal, no_color=True, width=200)
    monkeypatch.setattr(serve, "out", console)
    serve._print_address("http://127.0.0.1:4200/api", login, is_new=is_new)
    assert "http://127.0.0.1:4200\n" in text.getvalue()
    assert (LOGIN in text.getvalue()) is printed
    assert ("--show-login" in text.getvalue()) is bool(login)


def test_somebody_elses_server_at_the_port_is_not_taken_for_ours(url: str) -> None:
    program = [sys.executable, "-c", "input()"]
    with httpx.Client() as client, subprocess.Popen(program, stdin=subprocess.PIPE) as ours:
        assert serve._is_healthy(client, url, None)
        assert not serve._is_healthy(client, url, ours)
        ours.kill()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:4200/api"),
        ("0.0.0.0", "http://127.0.0.1:4200/api"),
        ("::", "http://[::1]:4200/api"),
        ("::1", "http://[::1]:4200/api"),
        ("gpu.example.com", "http://gpu.example.com:4200/api"),
    ],
)
def test_where_this_machine_reaches_its_server(host: str, url: str) -> None:
    assert serve._near_url(host, 4200) == url


def test_the_names_that_a_server_answers_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOORAGE_SERVE_HOSTS", raising=False)
    assert socket.gethostname() not in serve._names("127.0.0.1")
    assert {socket.gethostname(), "gpu.example.com"} <= serve._names("gpu.example.com")
    monkeypatch.setitem(os.environ, "MOORAGE_SERVE_HOSTS", "a.example,b.example")
    assert {"a.example", "b.example"} <= serve._names("127.0.0.1")


def test_where_to_listen_is_for_a_server_of_its_own(url: str) -> None:
    with (
        temporary_settings({PREFECT_API_URL: url}),
        pytest.raises(Failure, match=f"PREFECT_API_URL names {url}"),
    ):
        serve.serve_flows(1, port=4300)


def test_serving_migrates_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    migrated: list[str] = []

    def ends(**_: bool) -> None:
        raise SystemExit

    monkeypatch.setenv("MOORAGE_LEDGER_URL", "postgresql://db/moorage")
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(serve, "_hand_on_policy", lambda _: None)
    monkeypatch.setattr(serve, "migrate_database", migrated.append)
    monkeypatch.setattr(serve, "_server", ends)
    with pytest.raises(SystemExit):
        serve.serve_flows(1)
    assert migrated == ["postgresql://db/moorage"]
