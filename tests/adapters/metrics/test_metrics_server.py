"""The server of metrics answers Prometheus, and nobody who would misuse it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from moorage.adapters.ledger import Ledger
from moorage.adapters.metrics import metrics_server as module
from moorage.adapters.metrics.exporter import Exporter
from moorage.adapters.metrics.metrics_server import MetricsServer
from moorage.common.failures import Cause, Failure
from tests.prefect_server import free_port

SECONDS = 1.0
"""How long a connection lasts in these tests."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("metrics")
    ledger, port = Ledger(f"sqlite:///{folder / 'ledger.db'}"), free_port()
    server = MetricsServer(Exporter(ledger, folder), "127.0.0.1", port, ["metrics.example"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WHOLE_SECONDS", SECONDS)
        server.start()
        yield f"http://127.0.0.1:{port}"
    ledger.close()


@pytest.mark.parametrize(
    ("method", "path", "host", "status", "text"),
    [
        ("GET", "/metrics", "", 200, 'moorage_releases{state="running"} 0.0'),
        ("GET", "/metrics", "metrics.example", 200, "moorage_releases"),
        ("GET", "/targets", "localhost", 200, "[]"),
        ("GET", "/metrics", "attacker.example", 403, "does not answer to that Host"),
        ("GET", "/targets", "attacker.example", 403, "does not answer to that Host"),
        ("GET", "/metrics", "10.0.0.1", 403, "does not answer to that Host"),
        ("POST", "/metrics", "", 405, "only GET"),
        ("GET", "/", "", 404, "/metrics"),
        ("GET", "/gateways/main", "", 503, "no gateway 'main'"),
        ("GET", "/gateways/..%2f..%2fmain", "", 503, "no gateway"),
    ],
)
def test_what_it_answers(
    url: str, method: str, path: str, host: str, status: int, text: str
) -> None:
    answer = httpx.request(method, url + path, headers={"Host": host} if host else {})
    assert answer.status_code == status, answer.text
    assert text in answer.text
    assert answer.headers.get("connection") == (None if status == 403 else "close")


def test_a_page_of_another_origin_is_refused(url: str) -> None:
    answer = httpx.get(f"{url}/metrics", headers={"Origin": "http://attacker.example"})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "beginning", [b"", b"GET /metr", b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nX: "]
)
def test_a_request_that_never_ends_is_cut_off(url: str, beginning: bytes) -> None:
    port = int(url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS * 30) as caller:
        caller.sendall(beginning)
        assert _rest(caller) == b""


def test_a_port_that_is_taken_is_a_failure(tmp_path: Path) -> None:
    ledger, port = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}"), free_port()
    with socket.create_server(("127.0.0.1", port)), pytest.raises(Failure) as caught:
        MetricsServer(Exporter(ledger, tmp_path), "127.0.0.1", port, ())
    assert caught.value.cause is Cause.PORT_TAKEN
    ledger.close()


def _rest(caller: socket.socket) -> bytes:
    """What comes until the other side ends the connection."""
    try:
        return caller.recv(100)
    except ConnectionResetError:
        return b""
