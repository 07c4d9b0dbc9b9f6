"""Connections to a source are kept, and where its redirects led to is remembered."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from moorage.adapters.transfer.http_answer import body_of
from moorage.adapters.transfer.http_pool import HttpPool, proxy_for
from tests.hub.faults import Fault
from tests.hub.server import Hub
from tests.hub.tiny import pattern

REPO, NAME, DATA = "org/tiny", "model.safetensors", pattern(100_000)
TOKEN = {"Authorization": "Bearer hf_token"}


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub({REPO: {NAME: DATA}}, token="hf_token", cdn=True) as hub:
        yield hub


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The addresses of connections that are made from now on."""
    made, connect = list[tuple[str, int]](), socket.create_connection

    def counting(address: tuple[str, int], *more: Any, **named: Any) -> socket.socket:
        made.append(address)
        return connect(address, *more, **named)

    monkeypatch.setattr(socket, "create_connection", counting)
    return made


def pool_of(url: str, **more: Any) -> HttpPool:
    return HttpPool(url, seconds=5, head_seconds=5, **more)


def read(pool: HttpPool, hub: Hub, most: int = len(DATA)) -> bytes:
    """The first bytes of the file; the block is left before the rest is read."""
    found = b""
    with pool.get(f"{hub.url}/{REPO}/resolve/main/{NAME}", TOKEN) as answer:
        assert answer.status == 200
        for block in body_of(answer):
            found += block
            if len(found) >= most:
                break
    return found


def hosts(hub: Hub) -> list[str]:
    return [seen.host for seen in hub.requests]


def test_connections_are_used_again(hub: Hub, connected: list[tuple[str, int]]) -> None:
    pool = pool_of(hub.url)
    assert {read(pool, hub) for _ in range(3)} == {DATA}
    assert len(connected) == 2, "one to the hub, and one to what it leads to"


def test_a_body_that_is_not_read_costs_its_connection(
    hub: Hub, connected: list[tuple[str, int]]
) -> None:
    pool = pool_of(hub.url)
    hub.fail(NAME, Fault(pause=0.005))
    assert DATA.startswith(read(pool, hub, most=1))
    hub.fail(NAME, None)
    assert read(pool, hub) == DATA
    assert len(connected) == 3


def test_a_connection_that_the_server_closed_is_replaced(hub: Hub) -> None:
    pool = pool_of(hub.url)
    assert read(pool, hub) == DATA
    for idle in pool._idle.values():
        for connection in idle:
            connection.sock.shutdown(socket.SHUT_RDWR)
    assert read(pool, hub) == DATA


def test_where_a_redirect_led_to_is_asked_until_it_refuses(hub: Hub) -> None:
    pool = pool_of(hub.url)
    for _ in range(2):
        assert read(pool, hub) == DATA
    assert hosts(hub) == ["hub", "cdn", "cdn"]
    hub.fail(NAME, Fault(status=403, times=1))
    assert read(pool, hub) == DATA
    assert hosts(hub)[3:] == ["cdn", "hub", "cdn"]
    tokens = {seen.host: seen.authorization for seen in hub.requests}
    assert tokens == {"hub": TOKEN["Authorization"], "cdn": None}


def test_redirects_in_a_circle_end(hub: Hub) -> None:
    hub.fail(NAME, Fault(status=302, headers={"Location": f"/{REPO}/resolve/main/{NAME}"}))
    with pytest.raises(OSError, match="leads on and on"):
        read(pool_of(hub.url), hub)
    assert len(hub.requests) < 10


@pytest.mark.parametrize(
    "target", ["https://[?key=s3cret", "https://cdn:99999/", "https://cdn..x/", "/caf\u00c3\u00a9"]
)
def test_a_redirect_to_what_is_no_address_is_an_error_of_the_source(hub: Hub, target: str) -> None:
    hub.fail(NAME, Fault(status=302, headers={"Location": target}))
    with pytest.raises(OSError, match="is no address") as caught:
        read(pool_of(hub.url), hub)
    assert "s3cret" not in str(caught.value)


def test_a_redirect_that_drips_has_a_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):  # the client goes
                connection.sendall(
                    b"HTTP/1.1 302 on\r\nLocation: /a\r\nContent-Length: 9000\r\n\r\n"
                )
                for _ in range(9000):
                    connection.sendall(b" ")
                    time.sleep(0.01)

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        pool, began = HttpPool(url, seconds=5, head_seconds=0.3), time.monotonic()
        with pytest.raises(TimeoutError), pool.get(url, {}):
            pass
    assert time.monotonic() - began < 5


def test_a_body_that_is_cut_short_is_an_error(hub: Hub) -> None:
    hub.fail(NAME, Fault(cut_after=50_000))
    pool = pool_of(hub.url)
    with pytest.raises(http.client.IncompleteRead):
        read(pool, hub)


@pytest.mark.parametrize(
    ("url", "request_line"),
    [
        ("http://hub.example/a?b", "GET http://hub.example/a?b HTTP"),
        ("https://hub.example/a", "CONNECT hub.example:443 HTTP"),
    ],
)
def test_a_proxy_is_asked_with_its_password(
    monkeypatch: pytest.MonkeyPatch, url: str, request_line: str
) -> None:
    heard: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, connection.makefile("r") as lines:
                heard.extend(iter(lambda: lines.readline().strip(), ""))
                connection.sendall(b"HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        proxy = f"http://me:pa%20ss@127.0.0.1:{listening.getsockname()[1]}"
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, proxy)
        monkeypatch.delenv("no_proxy", raising=False)
        with suppress(OSError), pool_of(url, proxied=True).get(url, TOKEN):
            pass  # it refuses; for https that is an error
        thread.join()
    assert heard[0].startswith(request_line)
    assert "Proxy-Authorization: Basic bWU6cGEgc3M=" in heard


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("https://hub.inside.example/a", "http://proxy:3128"),
        ("http://localhost:5000/a", "http://proxy:3128"),
        ("http://127.0.0.1/a", "http://proxy:3128"),
        ("https://hub.example/a", "socks5://proxy:1080"),
        ("https://hub.example/a", ""),
    ],
)
def test_what_needs_no_proxy_is_asked_directly(
    monkeypatch: pytest.MonkeyPatch, url: str, proxy: str
) -> None:
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, proxy)
    monkeypatch.setenv("no_proxy", ".inside.example")
    assert proxy_for(urlsplit(url)) is None
