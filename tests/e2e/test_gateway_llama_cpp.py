"""Real engines behind the gateway: replaced in each way and killed under load, no request fails.

But one: what a killed replica has begun to stream cannot go on elsewhere, and ends as cut.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.test_gateway import Gateway, Load, place
from tests.e2e.workplace import Workplace

__all__ = ["place"]

pytestmark = [pytest.mark.process, pytest.mark.server]

PAUSE_SECONDS = 0.5
"""An answer of a real engine takes so much of the machine that replacing it would wait for it."""


class ChatGateway(Gateway):
    """Callers chat; every other answer is a stream, which must be whole."""

    turn = 0

    def ask(self, name: str, patience: float = 120, **more: Any) -> httpx.Response:
        self.turn += 1
        stream = bool(self.turn % 2)
        message = {"role": "user", "content": "Hello"}
        body = {"model": self.place.named(name), "messages": [message], "max_tokens": 4}
        url = f"{self.url}/v1/chat/completions"
        answer = httpx.post(url, json=body | {"stream": stream}, timeout=patience, **more)
        if answer.status_code == 200 and stream and '"finish_reason":"' not in answer.text:
            return httpx.Response(599, text=f"a stream was cut: {answer.text}")
        return answer


def spec(place: Workplace, gguf: Path, number: int, **replace: Any) -> Path:
    engine = {"name": "llama.cpp", "runtime": "process", "env": {"ROUND": str(number)}}
    replace = {"linger_seconds": 0, **replace}
    return place.spec(source=f"file://{gguf}", engine=engine, replicas=2, replace=replace)


def test_no_request_to_real_engines_fails(place: Workplace, tiny_gguf: Path) -> None:
    gateway, name = ChatGateway(place), place.named("tiny")
    place.run("deploy", spec(place, tiny_gguf, 1))
    with Load(gateway, "tiny", PAUSE_SECONDS) as load:
        load.go_on(place)
        place.run("deploy", spec(place, tiny_gguf, 2))
        load.go_on(place)
        workload = place.releases()[0].workloads[0]
        assert load.failed == []
        os.kill(int(workload.identity.partition("@")[0]), signal.SIGKILL)
        load.go_on(place)
        begun, load.failed = load.failed, []
        assert all("incomplete chunked read" in one for one in begun), begun
        place.run("reconcile")
        canary = {"strategy": "canary", "canary_share": 0.5, "canary_seconds": 2}
        place.run("deploy", spec(place, tiny_gguf, 3, **canary))
        load.go_on(place)
        place.run("deploy", spec(place, tiny_gguf, 4, strategy="stop-first"))
        load.go_on(place)
    assert load.failed == []
    assert gateway.models() == {name}
    assert {f"{name}.v{number}" for number in (1, 2, 4)} <= gateway.answered().keys()
