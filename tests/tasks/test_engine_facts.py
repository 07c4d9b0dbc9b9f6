from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from moorage.common.values import Origin
from moorage.engines.launch import LaunchPlan, Variable
from moorage.readiness.engine_facts import EngineFacts
from moorage.spec import EngineName
from tasks import engine_facts as step
from tasks.engine_facts import read_facts
from tasks.journal import journal
from tests.builders import a_container, a_measurement
from tests.prefect_server import free_port
from tests.tasks.test_journal import Ear

ANSWERS = {
    "/version": {"version": "0.32.0"},
    "/v1/models": {"data": [{"id": "tiny", "max_model_len": 2048}]},
}


class Engine(BaseHTTPRequestHandler):
    """Answers as vLLM does, models only to who has the key."""

    def do_GET(self) -> None:
        guarded = self.path.startswith("/v1") and self.headers["Authorization"] != "Bearer hush"
        self.send_response(401 if guarded else 200)
        self.end_headers()
        self.wfile.write(json.dumps({} if guarded else ANSWERS[self.path]).encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Engine) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def read(
    port: int, environment: tuple[Variable, ...] = (), *measured: Any
) -> tuple[tuple[EngineFacts, ...], Ear]:
    plan = LaunchPlan(
        release="tiny.v1",
        engine=EngineName.VLLM,
        engine_version="0.32.0",
        containers=(a_container(port=port, environment=environment),),
    )
    ear = Ear()
    with journal(ear):
        return asyncio.run(read_facts.fn(plan, measured)), ear


def test_a_guarded_engine_is_asked_with_its_key(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", "hush")
    key = Variable(name="VLLM_API_KEY", secret="OUR_KEY", origin=Origin.USER, reason="secrets")
    (found,), _ = read(port, (key,), a_measurement())
    assert (found.version, found.names, found.context) == ("0.32.0", ("tiny",), 2048)
    assert found.kv_tokens == 491520


def test_an_engine_that_refuses_to_list_still_tells_its_version(port: int) -> None:
    (found,), ear = read(port)
    assert (found.version, found.names, found.context) == ("0.32.0", (), None)
    assert ear.heard[-1] == "facts ended: version 0.32.0"


def test_an_engine_that_does_not_answer_fails_nothing() -> None:
    (found,), ear = read(free_port())
    assert (found.version, found.names) == ("", ())
    assert ear.heard[-1].endswith("says nothing")


def test_whatever_goes_wrong_is_told_and_fails_nothing(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*_: object) -> tuple[int, Any]:
        raise RuntimeError("the network is on fire")

    monkeypatch.setattr(step, "ask", breaks)
    found, ear = read(port)
    assert found == ()
    assert any("the network is on fire" in text for text in ear.heard)
