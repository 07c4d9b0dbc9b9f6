"""The guard before Prefect's server: foreign names and pages of other origins are refused."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.adapters.prefect.api_server import Guard, own_origins
from moorage.inventory.access import is_loopback
from tests.prefect_server import PrefectServer, prefect_server

__all__ = ["prefect_server"]

PORT = 4200
ORIGINS = own_origins(PORT)


async def application(scope: Any, _receive: Any, send: Any) -> None:
    """Answers everybody."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b"yes"})
    else:
        await send({"type": f"{scope['type']}.accept"})


def guard(*names: str, exposed: bool = False, origins: tuple[str, ...] = ()) -> Guard:
    return Guard(application, names, [*ORIGINS, *origins], exposed=exposed)


def answers(guarded: Guard, kind: str = "http", **headers: str) -> list[dict[str, Any]]:
    """What comes back."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(guarded({"type": kind, "headers": pairs}, send, send))  # type: ignore[arg-type]
    return sent


def passes(guarded: Guard, **headers: str) -> bool:
    return bool(answers(guarded, **headers)[0]["status"] == 200)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:4200", "localhost:4200", "LOCALHOST", "[::1]:4200", "127.0.0.1", "127.9.9.9"],
)
def test_names_of_the_loopback_are_its_own(host: str) -> None:
    assert passes(guard(), host=host)


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:4200", "127.0.0.1.evil.example", "localhost.evil.example"),
        *("evil.example@127.0.0.1", "127.0.0.1:4200:80", "127.0.0.1:", "127.0.0.1/", "", "[::1"),
        *("0.0.0.0:4200", "10.0.0.7", "2130706433", "0x7f.1", "[::ffff:10.0.0.7]", "localhost."),
    ],
)
def test_others_are_not(host: str) -> None:
    assert not passes(guard(), host=host)


@given(st.text(st.characters(codec="latin-1", exclude_characters="\r\n"), max_size=40))
def test_any_text_is_a_name_of_its_own_or_refused(host: str) -> None:
    named = host.lower().partition(":")[0]
    assert (
        not passes(guard(), host=host)
        or named == "localhost"
        or is_loopback(named)
        or "::1" in host
    )


def test_there_must_be_one_name() -> None:
    assert guard().refusal([])
    assert guard().refusal([(b"host", b"localhost"), (b"Host", b"evil.example")])


def test_where_other_machines_reach_it_addresses_are_its_own_and_names_that_were_given() -> None:
    exposed = guard("gpu.example.com", exposed=True)
    assert passes(exposed, host="10.0.0.7:4200")
    assert passes(exposed, host="GPU.example.com")
    assert not passes(exposed, host="evil.example")


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("host", "origin", "admitted"),
    [
        ("127.0.0.1:4200", "http://127.0.0.1:4200", True),
        ("127.0.0.1:4200", "http://localhost:4200", True),
        ("localhost:4300", "http://localhost:4300", True),
        ("127.0.0.1:4200", "http://127.0.0.1:9000", False),
        ("127.0.0.1:4200", "http://127.0.0.1", False),
        ("127.0.0.1:4200", "http://evil.example", False),
        ("127.0.0.1:4200", "http://evil.example:4200", False),
        ("127.0.0.1:4200", "http://127.0.0.1:4200.evil.example", False),
        ("127.0.0.1:4200", "null", False),
        ("127.0.0.1:4200", "", False),
        ("127.0.0.1:4200", "https://proxy.example", True),
    ],
)
def test_pages_of_other_origins_are_refused(
    kind: str, host: str, origin: str, admitted: bool
) -> None:
    first = answers(guard(origins=("https://proxy.example",)), kind, host=host, origin=origin)[0]
    if kind == "http":
        assert first["status"] == (200 if admitted else 403)
    else:
        assert first["type"] == ("websocket.accept" if admitted else "websocket.close")


def test_no_page_shows_it_inside_itself() -> None:
    for headers in ({"host": "localhost"}, {"host": "evil.example"}):
        start = answers(guard(), **headers)[0]
        assert (b"x-frame-options", b"DENY") in start["headers"]
    assert (b"a", b"b") in answers(guard(), host="localhost")[0]["headers"]


def test_what_is_no_request_goes_through() -> None:
    assert answers(guard(), "lifespan") == [{"type": "lifespan.accept"}]


@pytest.mark.server
def test_sqlite_takes_many_flow_runs_at_once(prefect_server: PrefectServer) -> None:
    """Without a turn for each writer, about every third is answered with 503."""
    flow = prefect_server.post("/flows/", {"name": "many-at-once"})["id"]

    def created(_number: int) -> int:
        with httpx.Client(auth=httpx.BasicAuth(*prefect_server.login.split(":", 1))) as client:
            content = {"flow_id": flow, "state": {"type": "PENDING"}}
            answer = client.post(f"{prefect_server.url}/flow_runs/", json=content, timeout=60)
            return answer.status_code

    with ThreadPoolExecutor(12) as pool:
        assert set(pool.map(created, range(60))) == {201}
