"""One address for all models while they are replaced and killed, with a real Envoy."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
import pytest

from moorage.gateway.envoy import ACCESS_LOG
from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace
from tests.gateway import streaming_server
from tests.prefect_server import free_port

pytestmark = [pytest.mark.process, pytest.mark.server]

CALLERS, PAUSE_SECONDS = 3, 0.1


class Gateway:
    """A gateway of a workplace."""

    def __init__(self, place: Workplace, *options: str) -> None:
        self.place, self.port = place, free_port()
        self.shown = place.json("gateway", "up", "--port", self.port, *options)
        self.url = self.shown["url"].removesuffix("/v1")
        self.folder = place.home / "gateways" / "main"

    def ask(self, name: str, patience: float = 30, **more: Any) -> httpx.Response:
        body = {"model": self.place.named(name), "prompt": "Hello", "max_tokens": 1}
        return httpx.post(f"{self.url}/v1/completions", json=body, timeout=patience, **more)

    def stream(self, name: str) -> list[str]:
        """The lines of a stream, to its end."""
        body = {"model": self.place.named(name), "prompt": "Hello", "stream": True}
        with httpx.stream("POST", f"{self.url}/v1/completions", json=body, timeout=60) as answer:
            return list(filter(None, answer.iter_lines()))

    def models(self) -> set[str]:
        return {one["id"] for one in httpx.get(f"{self.url}/v1/models").json()["data"]}

    def kill(self, program: str) -> None:
        """SIGKILL Envoy, or the service."""
        state = json.loads((self.folder / "run" / f"main-{program}" / "state.json").read_text())
        psutil.Process(state["pid"]).send_signal(signal.SIGKILL)

    def answered(self) -> Counter[str]:
        """Requests of callers by release, out of the access log."""
        time.sleep(1.5)  # it is written once a second
        lines = (self.folder / ACCESS_LOG).read_text().splitlines()
        return Counter(one["release"] for one in map(json.loads, lines) if one["status"] == 200)


class Load:
    """Callers that ask a model through the gateway, again `pause` seconds after each answer."""

    def __init__(self, gateway: Gateway, name: str, pause: float = PAUSE_SECONDS) -> None:
        self.answered, self.failed = 0, list[str]()
        self._gateway, self._name, self._end = gateway, name, threading.Event()
        self._pause = pause
        self._threads = [threading.Thread(target=self._ask) for _ in range(CALLERS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def go_on(self, place: Workplace) -> None:
        """Wait for some more answers."""
        enough = self.answered + 20
        place.wait_until(lambda: self.answered > enough)

    def _ask(self) -> None:
        while not self._end.wait(self._pause):
            try:
                answer = self._gateway.ask(self._name)
                wrong = "" if answer.status_code == 200 else f"{answer.status_code} {answer.text}"
            except httpx.HTTPError as error:
                wrong = repr(error)
            if wrong:
                self.failed.append(wrong)
            else:
                self.answered += 1


@pytest.fixture
def place(workplace: Workplace) -> Iterator[Workplace]:
    """A workplace whose gateway ends with it."""
    pytest.importorskip("envoy", reason="pip install '.[gateway]'")
    yield workplace
    if workplace.ledger.gateways.all():
        workplace.run("gateway", "down")


@pytest.fixture
def gateway(place: Workplace) -> Gateway:
    return Gateway(place)


def engine_spec(place: Workplace, program: Path, name: str = "tiny", **variables: str) -> Path:
    placement = {"ram": "64MiB"}
    return place.spec(name, engine=process_engine(program, **variables), placement=placement)


def test_three_replacements_under_load_fail_no_request(
    workplace: Workplace, gateway: Gateway, lifecycle_program: Path
) -> None:
    name = workplace.named("tiny")
    workplace.run("deploy", engine_spec(workplace, lifecycle_program, ROUND="0"))
    assert gateway.models() == {name}
    with Load(gateway, "tiny") as load:
        for turn in range(1, 4):
            workplace.run("deploy", engine_spec(workplace, lifecycle_program, ROUND=str(turn)))
            load.go_on(workplace)
            assert gateway.models() == {name}
    assert load.failed == []
    assert set(gateway.answered()) >= {f"{name}.v{number}" for number in (1, 2, 3, 4)}
    workplace.run("retire", name)
    assert gateway.models() == set()
    assert gateway.ask("tiny").status_code == 404


def test_a_release_that_stops_first_costs_its_callers_time_and_no_answer(
    workplace: Workplace, gateway: Gateway, lifecycle_program: Path
) -> None:
    name, replace = workplace.named("tiny"), {"strategy": "stop-first"}
    first = process_engine(lifecycle_program, ROUND="0")
    second = process_engine(lifecycle_program, "slow:2", ROUND="1")
    workplace.run("deploy", workplace.spec(engine=first, replace=replace))
    with Load(gateway, "tiny") as load:
        load.go_on(workplace)
        release = workplace.json("deploy", workplace.spec(engine=second, replace=replace))
        load.go_on(workplace)
    assert release["release"]["downtime_seconds"] > 2
    assert load.failed == []
    assert gateway.answered().keys() >= {f"{name}.v1", f"{name}.v2"}


def test_callers_of_a_release_that_stopped_for_one_that_fails_get_the_old_ones_answer(
    workplace: Workplace, gateway: Gateway, lifecycle_program: Path
) -> None:
    replace = {"strategy": "stop-first"}
    engine = process_engine(lifecycle_program)
    broken = process_engine(lifecycle_program, "die")
    workplace.run("deploy", workplace.spec(engine=engine, replace=replace))
    with Load(gateway, "tiny") as load:
        load.go_on(workplace)
        workplace.json("deploy", workplace.spec(engine=broken, replace=replace), code=6)
        load.go_on(workplace)
    assert load.failed == []


def canary_spec(
    place: Workplace, program: Path, *words: str, seconds: int, **variables: str
) -> Path:
    replace = {"strategy": "canary", "canary_share": 0.5, "canary_seconds": seconds}
    return place.spec(
        engine=process_engine(program, *words, **variables),
        placement={"ram": "64MiB"},
        replicas=2,
        replace={**replace, "linger_seconds": 0},
    )


def test_a_canary_gets_requests_while_it_is_watched_and_its_death_costs_none(
    workplace: Workplace, gateway: Gateway, lifecycle_program: Path
) -> None:
    first = canary_spec(workplace, lifecycle_program, seconds=3, ROUND="0")
    workplace.run("deploy", first)
    name = workplace.named("tiny")
    with Load(gateway, "tiny") as load:
        second = canary_spec(workplace, lifecycle_program, seconds=3, ROUND="1")
        workplace.run("deploy", second)
        dying = canary_spec(workplace, lifecycle_program, "dies-later:8", seconds=300)
        assert workplace.json("deploy", dying, code=6)["error"]["cause"] == "engine-exited"
        load.go_on(workplace)
    assert load.failed == []
    answered = gateway.answered()
    assert answered[f"{name}.v2,{name}.v1"] > 0
    assert answered[f"{name}.v3,{name}.v2"] > 0
    assert workplace.ledger.routes.current().canaries == ()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_canary_whose_deploy_is_stopped_ends_after_its_streams(
    workplace: Workplace, gateway: Gateway, tmp_path: Path, number: signal.Signals
) -> None:
    program, busy = streaming_engine(tmp_path)
    workplace.run("deploy", canary_spec(workplace, program, seconds=300, BUSY=str(busy)))
    second = canary_spec(workplace, program, seconds=300, BUSY=str(busy), ROUND="1")
    with Load(gateway, "tiny") as load, ThreadPoolExecutor(8) as callers:
        run = workplace.start("deploy", second)
        workplace.wait_until(lambda: bool(workplace.ledger.routes.current().canaries), run)
        streams = [callers.submit(gateway.stream, "tiny") for _ in range(8)]
        load.go_on(workplace)
        threading.Timer(3, busy.unlink).start()
        run.send_signal(number)
        run.communicate()
        if number == signal.SIGKILL:
            workplace.run("reconcile")
        assert {one.result()[-1] for one in streams} == {"data: [DONE]"}
        load.go_on(workplace)
    assert load.failed == []
    name = workplace.named("tiny")
    assert gateway.answered()[f"{name}.v2,{name}.v1"] > 0
    assert [row.state for row in workplace.releases()] == ["error", "running"]


def streaming_engine(folder: Path) -> tuple[Path, Path]:
    """An engine whose streams go on as long as the file named by BUSY is there; that file."""
    program, busy = folder / "engine", folder / "busy"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {streaming_server.__file__} "$@"\n')
    program.chmod(0o755)
    busy.touch()
    return program, busy


def test_a_stream_ends_before_its_engine_stops_though_the_engine_has_no_metrics(
    workplace: Workplace, gateway: Gateway, tmp_path: Path
) -> None:
    program, busy = streaming_engine(tmp_path)
    engine = process_engine(program, BUSY=str(busy))
    stopping = {"drain_seconds": 600, "grace_seconds": 1}
    at_once = {"linger_seconds": 0}  # the drain begins before the stream can end
    workplace.run("deploy", workplace.spec(engine=engine, stopping=stopping, replace=at_once))
    name = workplace.named("tiny")
    body = {"model": name, "prompt": "Hello", "stream": True}
    with httpx.stream("POST", f"{gateway.url}/v1/completions", json=body) as answer:
        events = filter(None, answer.iter_lines())
        assert next(events) == 'data: {"token": 1}'
        retiring = workplace.start("retire", name)
        workplace.wait_until(lambda: workplace.ledger.gateways.draining(f"{name}.v1") == 1)
        assert gateway.models() == set()
        busy.unlink()
        assert list(events)[-1] == "data: [DONE]"
    assert retiring.wait() == 0
    assert "its last request ended after" in workplace.releases()[0].cause


def test_commands_name_the_address_of_the_gateway(
    workplace: Workplace, gateway: Gateway, lifecycle_program: Path
) -> None:
    name, address = workplace.named("tiny"), f"{gateway.url}/v1"
    deployed = workplace.run("deploy", engine_spec(workplace, lifecycle_program)).stdout
    assert f"{address} (gateway)" in deployed
    assert workplace.run("endpoint", name).stdout.strip() == address
    assert workplace.json("endpoint", name)["gateways"] == [address]
    direct = workplace.run("endpoint", name, "--direct").stdout.strip()
    assert direct == f"{workplace.ledger.routes.routes(name)[0].endpoints[0]}/v1"
    [shown] = workplace.json("gateway", "status")
    assert (shown["state"], shown["url"]) == ("running", address)


def test_envoy_that_is_killed_comes_back_with_its_routes(
    workplace: Workplace, gateway: Gateway, lifecycle_program: Path
) -> None:
    workplace.run("deploy", engine_spec(workplace, lifecycle_program))
    gateway.kill("envoy")

    def answers() -> bool:
        try:
            return gateway.ask("tiny").status_code == 200
        except httpx.HTTPError:
            return False

    workplace.wait_until(answers)


def test_a_service_that_is_killed_costs_no_request_and_the_next_deploy_revives_it(
    workplace: Workplace, gateway: Gateway, lifecycle_program: Path
) -> None:
    workplace.run("deploy", engine_spec(workplace, lifecycle_program, ROUND="0"))
    with Load(gateway, "tiny") as load:
        gateway.kill("service")
        workplace.wait_until(lambda: load.answered > 20)
        [shown] = workplace.json("gateway", "status")
        assert shown["state"] == "does not follow: its service has ended"
        workplace.run("deploy", engine_spec(workplace, lifecycle_program, ROUND="1"))
        assert workplace.json("gateway", "status")[0]["state"] == "running"
    assert load.failed == []
    assert f"{workplace.named('tiny')}.v2" in gateway.answered()


def test_a_gateway_that_other_machines_reach_asks_for_a_key_that_can_be_revoked(
    place: Workplace, lifecycle_program: Path
) -> None:
    workplace, gateway = place, Gateway(place, "--bind", "0.0.0.0")
    workplace.run("deploy", engine_spec(workplace, lifecycle_program))
    key = workplace.run("key", "create", "ann", "--tokens", "2/day").stdout.strip()
    other = workplace.json("key", "create", "bob", "--models", "another")["key"]

    def status(given: str) -> int:
        return gateway.ask("tiny", headers={"authorization": f"Bearer {given}"}).status_code

    assert [status(given) for given in ("wrong", key, other)] == [401, 200, 403]
    assert gateway.ask("tiny").status_code == 401
    assert [one["name"] for one in workplace.json("key", "list")] == ["ann", "bob"]
    workplace.wait_until(lambda: bool(workplace.json("usage", "--key", "ann")))
    [used] = workplace.json("usage")
    assert (used["caller"], used["model"], used["requests"]) == ("ann", workplace.named("tiny"), 1)
    workplace.wait_until(lambda: status(key) == 429)
    workplace.run("key", "revoke", "ann")
    assert status(key) == 401
    files = [path for path in workplace.home.rglob("*") if path.is_file()]
    assert not [path for path in files if key.encode() in path.read_bytes()]


def test_a_port_that_is_taken_is_said_and_nothing_is_left(place: Workplace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = place.json("gateway", "up", "--port", port, code=7)["error"]
    assert error["cause"] == "port-taken"
    assert f"127.0.0.1:{port}: Address already in use" in error["detail"]
    assert place.json("gateway", "status") == []
    assert not place.processes()
