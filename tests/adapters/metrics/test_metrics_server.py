"""The server of metrics answers Prometheus, and nobody who would misuse it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from moorage.adapters.ledger import Ledger
from moorage.adapters.metrics import metrics_server as module
from moorage.adapters.metrics.exporter import Exporter
from moorage.adapters.metrics.metrics_server import MetricsServer
from moorage.common.failures import Cause, Failure
from moorage.reports.metric_families import Family
from tests.prefect_server import free_port

SOON = 0.3
"""Seconds until a connection is cut off, where a test waits for that."""

REQUEST = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


class SlowExporter(Exporter):
    """Has no metrics, and those not before it is told."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()

    def metrics(self) -> tuple[Family, ...]:
        self.may_answer.wait(60)
        return ()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("metrics")
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
    yield f"http://127.0.0.1:{_served(Exporter(ledger, folder))}"
    ledger.close()


@pytest.fixture
def slow() -> Iterator[SlowExporter]:
    exporter = SlowExporter()
    yield exporter
    exporter.may_answer.set()


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
    ("limit", "sent"),
    [
        ("REQUEST_SECONDS", b""),
        ("REQUEST_SECONDS", b"GET /metr"),
        ("REQUEST_SECONDS", b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nX: "),
        ("WHOLE_SECONDS", REQUEST),
    ],
)
def test_a_connection_that_does_not_end_is_cut_off(
    slow: SlowExporter, monkeypatch: pytest.MonkeyPatch, limit: str, sent: bytes
) -> None:
    for name in ("REQUEST_SECONDS", "WHOLE_SECONDS"):
        monkeypatch.setattr(module, name, SOON if name == limit else 600.0)
    with _caller(_served(slow)) as caller:
        caller.sendall(sent)
        assert _rest(caller) == b""


def test_whoever_has_asked_may_wait_longer_than_who_says_nothing(
    slow: SlowExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REQUEST_SECONDS", 2.0)  # enough for a request on a busy machine
    port = _served(slow)
    with _caller(port) as asking:
        asking.sendall(REQUEST)
        with _caller(port) as silent:
            assert _rest(silent) == b""
        slow.may_answer.set()
        assert _rest(asking).startswith(b"HTTP/1.1 200 ")


def test_no_more_connections_are_held_than_the_limit(
    slow: SlowExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REQUEST_SECONDS", 600.0)
    slow.may_answer.set()
    port = _served(slow)
    with ExitStack() as stack:
        held = [stack.enter_context(_caller(port)) for _ in range(module.AT_ONCE)]
        for _ in range(3):
            with _caller(port) as excess:
                assert _rest(excess) == b""
        for one in held:
            one.sendall(REQUEST)
            assert _rest(one).startswith(b"HTTP/1.1 200 ")
        assert httpx.get(f"http://127.0.0.1:{port}/metrics").status_code == 200


def test_a_port_that_is_taken_is_a_failure(tmp_path: Path) -> None:
    ledger, port = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}"), free_port()
    with socket.create_server(("127.0.0.1", port)), pytest.raises(Failure) as caught:
        MetricsServer(Exporter(ledger, tmp_path), "127.0.0.1", port, ())
    assert caught.value.cause is Cause.PORT_TAKEN
    ledger.close()


def _served(exporter: Exporter) -> int:
    """The port of a server that ends with the process."""
    port = free_port()
    MetricsServer(exporter, "127.0.0.1", port, ["metrics.example"]).start()
    return port


def _caller(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def _rest(caller: socket.socket) -> bytes:
    """What comes until the other side ends the connection."""
    found = b""
    try:
        while piece := caller.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found
