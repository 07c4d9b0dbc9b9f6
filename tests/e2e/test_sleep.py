"""Models that sleep and wake: nothing runs and nothing is claimed in between."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from moorage.releases.states import ReleaseState
from tests.e2e.conftest import process_engine
from tests.e2e.test_gateway import Gateway, streaming_engine
from tests.e2e.workplace import Workplace
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.process, pytest.mark.server]


def deployed(place: Workplace, program: Path, behaviour: str = "ok", name: str = "tiny") -> str:
    """Deploy a model; its name."""
    engine = process_engine(program, behaviour)
    place.run("deploy", place.spec(name, engine=engine, placement={"ram": "64MiB"}))
    return place.named(name)


def state(place: Workplace) -> str:
    return place.releases()[0].state


def test_a_model_that_sleeps_holds_nothing_and_wakes_where_it_was(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    name = deployed(workplace, lifecycle_program)
    before = workplace.json("endpoint", name)["endpoints"]
    claims = workplace.claims()
    slept = workplace.json("unload", name)
    assert (slept["release"], state(workplace)) == (f"{name}.v1", "asleep")
    assert {claim.resource for claim in workplace.claims()} == {"port"}
    assert not workplace.running()
    assert workplace.json("status", name)[0]["state"] == "asleep"
    assert "sleeps" in workplace.run("unload", name).stdout
    woken = workplace.json("load", name)
    assert (woken["release"], state(workplace)) == (f"{name}.v1", "running")
    assert workplace.claims() == claims
    assert workplace.json("endpoint", name)["endpoints"] == before
    assert workplace.run("chat", name, "Hello").stdout.strip() == "ok"
    assert "serves already" in workplace.run("load", name).stdout
    workplace.run("retire", name)
    assert workplace.is_clean()


def test_a_model_that_sleeps_is_replaced_or_retired_without_waking(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    fixed: dict[str, Any] = {"placement": {"ram": "64MiB"}, "port": workplace.first_port}
    name, engine = workplace.named("tiny"), process_engine(lifecycle_program)
    workplace.run("deploy", workplace.spec(engine=engine, **fixed))
    workplace.run("unload", name)
    kept = workplace.claims()
    fails = workplace.spec(engine=process_engine(lifecycle_program, "die"), **fixed)
    workplace.run("deploy", fails, code=None)
    assert (state(workplace), workplace.claims()) == ("error", kept), (
        "the sleeper has its port back"
    )
    changed = workplace.spec(engine=process_engine(lifecycle_program, "slow:1"), **fixed)
    workplace.run("plan", changed)
    workplace.run("deploy", changed)
    assert [row.state for row in workplace.releases()] == ["running", "error", "superseded"]
    workplace.run("unload", name)
    assert "is retired" in workplace.run("retire", name).stdout
    assert [row.state for row in workplace.releases()] == ["stopped", "error", "superseded"]
    assert workplace.is_clean()


def test_a_model_whose_memory_is_taken_sleeps_on_and_says_why(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    fleet = workplace.folder / "fleet.yaml"
    name = deployed(workplace, lifecycle_program)
    workplace.run("unload", name)
    fleet.write_text(fleet.read_text().replace("name: local,", "name: local, ram: 100MiB,"))
    deployed(workplace, lifecycle_program, name="other")
    error = workplace.json("load", name, "--fleet", fleet, code=3)["error"]
    assert error["cause"] == "no-fit"
    assert "RAM" in error["detail"]
    assert state(workplace) == "asleep"
    workplace.run("retire", workplace.named("other"))
    workplace.run("load", name, "--fleet", fleet)
    assert state(workplace) == "running"


def test_a_model_that_does_not_wake_sleeps_on_and_can_be_tried_again(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    name = deployed(workplace, lifecycle_program)
    workplace.run("unload", name)
    [row] = workplace.releases()
    assert row.release
    port = int(row.release.workloads[0].endpoint.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)):
        error = workplace.json("load", name, code=7)["error"]
    assert error["cause"] == "port-taken"
    assert state(workplace) == "asleep"
    assert {claim.resource for claim in workplace.claims()} == {"port"}
    assert not workplace.running()
    workplace.run("load", name)
    assert state(workplace) == "running"


@pytest.fixture
def gateway(workplace: Workplace) -> Iterator[Gateway]:
    pytest.importorskip("envoy", reason="pip install '.[gateway]'")
    yield Gateway(workplace, "--fleet", str(workplace.folder / "fleet.yaml"))
    workplace.run("gateway", "down")


def shown(place: Workplace, name: str) -> dict[str, Any]:
    """What `moorage status` says of a model."""
    [row] = place.json("status", place.named(name))
    return dict(row)


def listed(gateway: Gateway) -> dict[str, str]:
    listing = httpx.get(f"{gateway.url}/v1/models").json()
    return {one["id"]: one["state"] for one in listing["data"]}


def test_a_model_falls_asleep_and_fifty_callers_wake_it_once(
    workplace: Workplace, gateway: Gateway, lifecycle_program: Path
) -> None:
    name = workplace.named("tiny")
    engine = process_engine(lifecycle_program)
    small = {"ram": "64MiB"}
    workplace.run("deploy", workplace.spec(engine=engine, placement=small, keep_alive="2s"))
    assert gateway.ask("tiny").status_code == 200
    workplace.wait_until(lambda: state(workplace) == "asleep")
    assert "no request for" in workplace.releases()[0].cause
    workplace.wait_until(lambda: listed(gateway) == {name: "asleep"})
    with ThreadPoolExecutor(50) as callers:
        answers = list(callers.map(lambda _: gateway.ask("tiny", patience=300), range(50)))
    assert {answer.status_code for answer in answers} == {200}
    timeline = workplace.ledger.releases.transitions(f"{name}.v1")
    assert [one.after for one in timeline].count(ReleaseState.WAKING) == 1
    assert gateway.ask("tiny").status_code == 200


def test_a_caller_is_told_why_a_model_does_not_wake(
    workplace: Workplace, gateway: Gateway, lifecycle_program: Path
) -> None:
    name = deployed(workplace, lifecycle_program)
    [row] = workplace.releases()
    assert row.release
    port = int(row.release.workloads[0].endpoint.rpartition(":")[2])
    workplace.run("unload", name)
    with socket.create_server(("127.0.0.1", port)):
        refused = gateway.ask("tiny", patience=300)
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) > 0
    assert "port" in refused.json()["error"]["message"]
    assert gateway.ask("tiny").status_code == 503
    # The port is looked at before anything is claimed or started.
    timeline = workplace.ledger.releases.transitions(f"{name}.v1")
    assert ReleaseState.WAKING not in [one.after for one in timeline]


def test_the_longest_idle_model_makes_room_and_one_that_never_sleeps_does_not(
    workplace: Workplace, gateway: Gateway, lifecycle_program: Path
) -> None:
    fleet = workplace.folder / "fleet.yaml"
    fleet.write_text(fleet.read_text().replace("name: local,", "name: local, ram: 200MiB,"))
    engine = process_engine(lifecycle_program)
    small = {"ram": "64MiB"}
    for name, keep_alive in (("a", "1h"), ("b", "1h"), ("always", "never")):
        workplace.run(
            "deploy", workplace.spec(name, engine=engine, placement=small, keep_alive=keep_alive)
        )
    workplace.run("unload", workplace.named("a"))
    workplace.run("deploy", workplace.spec("c", engine=engine, placement=small, keep_alive="1h"))
    assert gateway.ask("c").status_code == 200
    workplace.wait_until(lambda: bool(shown(workplace, "c")["last_request"]))
    assert shown(workplace, "c")["sleeps_at"] > shown(workplace, "c")["last_request"]
    assert shown(workplace, "always")["sleeps_at"] is None
    assert gateway.ask("a", patience=300).status_code == 200
    states = {name: workplace.releases(name)[0].state for name in ("a", "b", "c", "always")}
    assert states == {"a": "running", "b": "asleep", "c": "running", "always": "running"}
    assert workplace.named("a") in workplace.releases("b")[0].cause


def test_a_stream_that_woke_its_model_ends_before_the_engine_stops(
    workplace: Workplace, gateway: Gateway, tmp_path: Path
) -> None:
    program, busy = streaming_engine(tmp_path)
    engine = process_engine(program, BUSY=str(busy))
    stopping = {"drain_seconds": 600, "grace_seconds": 1}
    workplace.run("deploy", workplace.spec(engine=engine, stopping=stopping))
    name = workplace.named("tiny")
    workplace.run("unload", name)
    body = {"model": name, "prompt": "Hello", "stream": True}
    url = f"{gateway.url}/v1/completions"
    with httpx.stream("POST", url, json=body, timeout=PATIENCE_SECONDS) as answer:
        events = (line for line in answer.iter_lines() if line.startswith("data:"))
        assert next(events) == 'data: {"token": 1}'
        retiring = workplace.start("retire", name)
        workplace.wait_until(lambda: workplace.ledger.gateways.draining(f"{name}.v1") == 1)
        time.sleep(2)  # until the retire has seen it, too
        busy.unlink()
        assert list(events)[-1] == "data: [DONE]"
    assert retiring.wait() == 0
    assert "its last request ended after" in workplace.releases()[0].cause


@pytest.mark.usefixtures("gateway")
def test_a_model_that_is_asked_through_another_gateway_stays_awake(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    name, engine = workplace.named("tiny"), process_engine(lifecycle_program)
    second = Gateway(workplace, "--name", "second")
    try:
        workplace.run("deploy", workplace.spec(engine=engine, keep_alive="2s"))
        until = time.monotonic() + 10
        while time.monotonic() < until:
            assert second.ask("tiny", patience=300).status_code == 200
            time.sleep(0.2)
        timeline = workplace.ledger.releases.transitions(f"{name}.v1")
        assert timeline[-1].after == ReleaseState.RUNNING
        assert ReleaseState.WAKING not in [one.after for one in timeline]
        workplace.wait_until(lambda: state(workplace) == "asleep")
    finally:
        workplace.run("gateway", "down", "--name", "second")
