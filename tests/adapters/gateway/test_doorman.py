from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import httpx
import pytest

from moorage.adapters.gateway.doorman import Doorman, Endpoint, Limits
from moorage.adapters.gateway.doorman_server import DoormanServer
from moorage.common.failures import Cause, Failure
from moorage.gateway.routes import MODEL_HEADER
from tests.gateway.engine import TestEngine


class Sleeper:
    """A model that wakes when the test says so."""

    def __init__(self, endpoint: str) -> None:
        self.endpoints: tuple[str, ...] = (endpoint,)
        self.wakes = 0
        self.awake = asyncio.Event()
        self.failure: Failure | None = None

    async def wake(self, _model: str) -> Endpoint:
        self.wakes += 1
        await self.awake.wait()
        if self.failure:
            raise self.failure
        return Endpoint(self.endpoints, "engine-key", "llama.v1")


class Silent:
    """An engine that answers when the test says so."""

    def __init__(self, status: int = 200, content: str = "{}") -> None:
        self.request_came, self.may_answer = asyncio.Event(), asyncio.Event()
        self.came, self.breaks_off = 0, False
        self._answer = f"HTTP/1.1 {status} x\r\ncontent-length: {len(content)}\r\n\r\n{content}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.came += 1
        self.request_came.set()
        await self.may_answer.wait()
        if not self.breaks_off:
            writer.write(self._answer.encode())
            await writer.drain()
        writer.close()


@pytest.fixture
async def sleeper() -> AsyncIterator[Sleeper]:
    with TestEngine("woken") as engine:
        yield Sleeper(f"http://127.0.0.1:{engine.port}")


def caller(doorman: Doorman) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(doorman)
    return httpx.AsyncClient(
        transport=transport, base_url="http://doorman", headers={MODEL_HEADER: "llama"}
    )


async def ask(client: httpx.AsyncClient, *, stream: bool = False) -> httpx.Response:
    return await client.post("/v1/chat/completions", json={"model": "llama", "stream": stream})


async def test_fifty_callers_cause_one_start_and_are_all_answered(sleeper: Sleeper) -> None:
    async with caller(Doorman(sleeper.wake)) as client:
        asking = [asyncio.create_task(ask(client)) for _ in range(50)]
        await asyncio.sleep(0.05)
        sleeper.awake.set()
        answers = await asyncio.gather(*asking)
    assert sleeper.wakes == 1
    assert [answer.json()["by"] for answer in answers] == ["woken"] * 50


async def test_a_caller_that_leaves_does_not_end_the_start_for_the_others(sleeper: Sleeper) -> None:
    async with caller(Doorman(sleeper.wake)) as client:
        first, second = (asyncio.create_task(ask(client)) for _ in range(2))
        await asyncio.sleep(0.05)
        first.cancel()
        sleeper.awake.set()
        answer = await second
    assert (sleeper.wakes, answer.json()["by"]) == (1, "woken")


async def test_a_streaming_caller_gets_comments_until_the_model_answers(sleeper: Sleeper) -> None:
    async with caller(Doorman(sleeper.wake, Limits(quiet_seconds=0.02))) as client:
        asking = asyncio.create_task(ask(client, stream=True))
        await asyncio.sleep(0.1)
        sleeper.awake.set()
        answer = await asking
    events = [line for line in answer.text.splitlines() if line]
    assert events[0] == ": the model is starting"
    assert events[-1] == "data: [DONE]"


async def test_a_start_that_failed_is_told_and_not_repeated_at_once(sleeper: Sleeper) -> None:
    now = 0.0
    sleeper.failure = Failure(Cause.NO_FIT, "2 GiB needed, 1 GiB free")
    sleeper.awake.set()
    async with caller(Doorman(sleeper.wake, clock=lambda: now)) as client:
        first, second = [await ask(client) for _ in range(2)]
        now = 6.0
        third = await ask(client)
    assert [answer.status_code for answer in (first, second, third)] == [503] * 3
    assert "2 GiB needed, 1 GiB free" in second.json()["error"]["message"]
    assert [answer.headers["retry-after"] for answer in (first, third)] == ["5", "10"]
    assert sleeper.wakes == 2


async def test_who_finds_the_queue_full_may_come_back(sleeper: Sleeper) -> None:
    async with caller(Doorman(sleeper.wake, Limits(waiting=1))) as client:
        first = asyncio.create_task(ask(client))
        await asyncio.sleep(0.05)
        second = await ask(client)
        sleeper.awake.set()
        assert (await first).status_code == 200
    assert second.status_code == 503
    assert second.headers["retry-after"] == "5"


async def test_a_caller_waits_no_longer_than_its_deadline(sleeper: Sleeper) -> None:
    async with caller(Doorman(sleeper.wake, Limits(hold_seconds=0.05))) as client:
        answer = await ask(client)
    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == "'llama' is still starting."


async def test_bodies_that_wait_have_a_limit_together(sleeper: Sleeper) -> None:
    async with caller(Doorman(sleeper.wake, Limits(held_bytes=60))) as client:
        first = asyncio.create_task(ask(client))
        await asyncio.sleep(0.05)
        second = await ask(client)
        sleeper.awake.set()
        assert (await first).status_code == 200
        assert (await ask(client)).status_code == 200
    assert (second.status_code, second.headers["retry-after"]) == (503, "5")


@pytest.mark.parametrize("sent", ["/v1/rerank?a=1&b=%20", "/v1/%256Coad_lora_adapter", "/v1/a%20b"])
async def test_a_request_is_passed_on_as_it_is(sleeper: Sleeper, sent: str) -> None:
    sleeper.awake.set()
    deep = b"[" * 100_000
    with TestEngine("woken") as engine:
        sleeper.endpoints = (f"http://127.0.0.1:{engine.port}",)
        async with caller(Doorman(sleeper.wake)) as client:
            assert (await client.post(sent, content=deep)).status_code == 200
        [(path, _, body)] = engine.requests
    assert (path, body) == (sent, deep)


async def test_a_body_has_a_limit(sleeper: Sleeper) -> None:
    async with caller(Doorman(sleeper.wake, Limits(body_bytes=10))) as client:
        answer = await ask(client)
    assert (answer.status_code, sleeper.wakes) == (413, 0)


async def test_requests_to_one_model_hold_up_no_other_model(sleeper: Sleeper) -> None:
    sleeper.awake.set()
    doorman = Doorman(sleeper.wake)
    async with Silent() as engine, caller(doorman) as client:
        sleeper.endpoints = (engine.url,)
        asking = [asyncio.create_task(ask(client)) for _ in range(101)]
        async with asyncio.timeout(20):
            while engine.came < 101:
                await asyncio.sleep(0.01)
            other = {MODEL_HEADER: "phi"}
            asking.append(asyncio.create_task(client.post("/v1/completions", headers=other)))
            while engine.came < 102:
                await asyncio.sleep(0.01)
            engine.may_answer.set()
            answers = await asyncio.gather(*asking)
    assert {answer.status_code for answer in answers} == {200}


@pytest.mark.parametrize("fails", [None, "refuses", "breaks off"])
async def test_held_requests_spread_over_all_replicas_that_answer(
    sleeper: Sleeper, fails: str | None
) -> None:
    async with (
        Silent() as first,
        Silent() as other,
        caller(Doorman(sleeper.wake)) as client,
    ):
        sleeper.endpoints = (first.url, other.url)
        if fails == "refuses":
            await first.__aexit__()
        first.breaks_off = fails == "breaks off"
        asking = [asyncio.create_task(ask(client)) for _ in range(20)]
        await asyncio.sleep(0.05)
        sleeper.awake.set()
        for engine in (first, other):
            engine.may_answer.set()
        answers = await asyncio.gather(*asking)
    assert [answer.status_code for answer in answers] == [200] * 20
    assert other.came == (20 if fails else 10)


async def test_a_caller_that_left_gives_its_place_to_others(
    sleeper: Sleeper, tmp_path: Path
) -> None:
    doorman, socket = Doorman(sleeper.wake, Limits(waiting=1)), tmp_path / "doorman.sock"
    DoormanServer(doorman, socket).start()
    while not socket.exists():
        await asyncio.sleep(0.01)
    for stream in (False, True):
        deadline = asyncio.get_running_loop().time() + 20
        _, writer = await asyncio.open_unix_connection(socket)
        body = json.dumps({"stream": stream})
        head = f"POST /v1/completions HTTP/1.1\r\nhost: a\r\n{MODEL_HEADER}: llama\r\n"
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
        while not doorman.active["llama"]:
            await asyncio.sleep(0.01)
        writer.close()
        while doorman.active["llama"]:
            await asyncio.sleep(0.01)
            assert asyncio.get_running_loop().time() < deadline


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_counts_from_its_first_moment_to_its_last(
    sleeper: Sleeper, stream: bool
) -> None:
    doorman = Doorman(sleeper.wake, Limits(quiet_seconds=0.01))
    async with Silent() as engine, caller(doorman) as client:
        sleeper.endpoints = (engine.url,)
        asking = asyncio.create_task(ask(client, stream=stream))
        await asyncio.sleep(0.05)
        assert (doorman.active["llama"], doorman.passing["llama.v1"]) == (1, 0)
        sleeper.awake.set()
        await engine.request_came.wait()
        assert (doorman.active["llama"], doorman.passing["llama.v1"]) == (1, 1)
        engine.may_answer.set()
        assert (await asking).status_code == 200
    assert (doorman.active["llama"], doorman.passing["llama.v1"]) == (0, 0)


async def test_a_streaming_caller_that_waited_is_told_of_an_error_as_an_event(
    sleeper: Sleeper,
) -> None:
    error = '{"error": {\n"message": "too long"}}'
    async with (
        Silent(400, error) as engine,
        caller(Doorman(sleeper.wake, Limits(quiet_seconds=0.01))) as client,
    ):
        sleeper.endpoints = (engine.url,)
        asking = asyncio.create_task(ask(client, stream=True))
        await asyncio.sleep(0.5)
        sleeper.awake.set()
        engine.may_answer.set()
        answer = await asking
    [event] = [line for line in answer.text.splitlines() if line and not line.startswith(":")]
    assert json.loads(event.removeprefix("data: ")) == json.loads(error)


async def test_a_start_that_the_machine_refuses_is_told_and_not_repeated_at_once() -> None:
    wakes = []

    async def wake(model: str) -> Endpoint:
        wakes.append(model)
        raise BlockingIOError(11, "no more processes")

    async with caller(Doorman(wake)) as client:
        answers = [await ask(client) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [503, 503]
    assert "no more processes" in answers[0].json()["error"]["message"]
    assert len(wakes) == 1
