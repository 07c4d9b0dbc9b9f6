"""Adapters of running replicas: small servers that take and refuse them as vLLM does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

import pytest
from prefect.client.schemas.objects import State

from flows.load_adapter import load_adapter
from flows.retire_model import retire_model
from flows.unload_adapter import unload_adapter
from moorage.common.failures import Cause, Failure
from moorage.models.pin import Pin
from moorage.policy.request import Channel
from moorage.releases.states import ReleaseState
from moorage.spec import AdapterSpec
from tasks.context import ledger, settings
from tasks.policy import channel_scope
from tests.builders import REVISION, a_container, a_plan, a_profile, a_release, a_spec, a_workload
from tests.hub.tiny import safetensors

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("own_home", "flows_run_there")]

MODEL = "tiny"
CONFIG = {"peft_type": "LORA", "r": 4}


class Replica(ThreadingHTTPServer):
    """A server that lists, loads and unloads; `refuses` is the message that it refuses with."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.names: dict[str, str] = {MODEL: ""}
        self.refuses = self.says_nothing = ""
        self.unloading, self.may_unload = Event(), Event()
        self.may_unload.set()
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Replica

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": name} for name in self.server.names]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = body.get("lora_name", body.get("model"))
        if self.path == "/v1/load_lora_adapter":
            if self.server.refuses:
                return self._answer(500, {"error": {"message": self.server.refuses}})
            self.server.names[name] = body["lora_path"]
        elif name not in self.server.names:
            return self._answer(404, {"error": {"message": f"{name} cannot be found."}})
        elif self.path == "/v1/unload_lora_adapter":
            self.server.unloading.set()
            self.server.may_unload.wait()
            del self.server.names[name]
        reason = "abort" if self.server.says_nothing == name else "length"
        return self._answer(200, {"choices": [{"text": "x", "finish_reason": reason}]})

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def replicas() -> Iterator[tuple[Replica, Replica]]:
    """Two replicas that the ledger knows as a running release."""
    pair = Replica(), Replica()
    spec = a_spec(lora_updates={"max": 1})
    identity = ledger().releases.begin(spec, REVISION, "")
    names = [f"moorage-{identity}-r{number}-leader" for number in range(2)]
    for name, replica in zip(names, pair, strict=True):
        own = {"release": identity, "ledger": ledger().identity, "endpoint": replica.endpoint}
        ledger().workloads.put(identity, a_workload(name, **own))
    plan = a_plan(*(a_container(name=name) for name in names), release=identity)
    for state in (ReleaseState.SCHEDULED, ReleaseState.STARTING):
        ledger().releases.move(identity, state)
    profile = a_profile(has_chat_template=False)
    ledger().releases.take_over(a_release(identity, spec=spec, plan=plan, profile=profile))
    yield pair
    for replica in pair:
        replica.shutdown()
        replica.server_close()


@pytest.fixture
def poet(tmp_path: Path) -> Callable[..., AdapterSpec]:
    """Makes an adapter in a directory."""

    def make(name: str = "poet") -> AdapterSpec:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "adapter_config.json").write_text(json.dumps(CONFIG))
        content = safetensors({"a": ("F32", [4, 64])})
        (folder / "adapter_model.safetensors").write_bytes(content)
        return AdapterSpec(name=name, source=f"file://{folder}")

    return make


def test_every_replica_takes_an_adapter_and_the_ledger_knows(
    replicas: tuple[Replica, Replica], poet: Callable[..., AdapterSpec]
) -> None:
    wanted = poet()
    state = load(wanted)
    assert state.name == "Completed"
    for replica in replicas:
        assert Path(replica.names["poet"], "adapter_model.safetensors").is_file()
    assert [[pin.name for pin in held] for held in held_by_replicas()] == [["poet"], ["poet"]]
    assert load(wanted).name == "Unchanged"

    unload("poet")
    assert all(list(replica.names) == [MODEL] for replica in replicas)
    assert held_by_replicas() == [(), ()]
    assert list(settings().adapters_folder(MODEL).iterdir()) == []


def test_a_flow_that_is_stopped_finishes_an_unload_in_progress(
    replicas: tuple[Replica, Replica], poet: Callable[..., AdapterSpec]
) -> None:
    load(poet())
    replicas[0].may_unload.clear()
    asyncio.run(_stopped_at(replicas[0].unloading, replicas[0].may_unload))
    assert replicas[0].may_unload.is_set(), "the flow waited for the engine"
    assert held_by_replicas() == [(), ()]


def test_when_one_replica_refuses_none_has_the_adapter(
    replicas: tuple[Replica, Replica], poet: Callable[..., AdapterSpec]
) -> None:
    replicas[1].refuses = "LoRA rank 4 is greater than max_lora_rank 2."
    failure = failure_of(lambda: load(poet()))
    assert failure.cause is Cause.ADAPTER_REFUSED
    assert "greater than max_lora_rank 2" in failure.detail
    assert_nothing_is_loaded(replicas)


def test_an_adapter_that_does_not_answer_is_taken_back(
    replicas: tuple[Replica, Replica], poet: Callable[..., AdapterSpec]
) -> None:
    replicas[1].says_nothing = "poet"
    assert failure_of(lambda: load(poet())).cause is Cause.BAD_ANSWER
    assert_nothing_is_loaded(replicas)


def test_a_replica_that_does_not_answer_at_all_is_named(
    replicas: tuple[Replica, Replica], poet: Callable[..., AdapterSpec]
) -> None:
    replicas[1].shutdown()
    replicas[1].server_close()
    failure = failure_of(lambda: load(poet()))
    assert failure.cause is Cause.ADAPTER_REFUSED
    assert "r1-leader does not tell what it serves" in failure.detail
    assert list(replicas[0].names) == [MODEL]


def test_a_second_adapter_finds_no_room_and_the_first_stays(
    replicas: tuple[Replica, Replica], poet: Callable[..., AdapterSpec]
) -> None:
    load(poet())
    assert failure_of(lambda: load(poet("judge"))).cause is Cause.ADAPTERS_FULL
    assert all(list(replica.names) == [MODEL, "poet"] for replica in replicas)


def test_what_a_killed_load_left_keeps_its_name_until_it_is_unloaded(
    replicas: tuple[Replica, Replica], poet: Callable[..., AdapterSpec]
) -> None:
    wanted = poet()
    replicas[0].names["poet"] = "/loaded by a flow that was killed"
    assert failure_of(lambda: load(wanted)).cause is Cause.ADAPTER_NAME_TAKEN
    assert "poet" in replicas[0].names
    unload("poet")
    assert_nothing_loaded_by_name(replicas)
    assert load(wanted).name == "Completed"


def test_a_replica_that_was_started_again_is_given_its_adapter_again(
    replicas: tuple[Replica, Replica], poet: Callable[..., AdapterSpec]
) -> None:
    wanted = poet()
    load(wanted)
    del replicas[1].names["poet"]
    assert load(wanted).name == "Completed"
    assert all("poet" in replica.names for replica in replicas)


def test_a_model_that_does_not_run_takes_no_adapters(poet: Callable[..., AdapterSpec]) -> None:
    assert failure_of(lambda: load(poet())).cause is Cause.UNKNOWN_RELEASE
    assert failure_of(lambda: unload("poet")).cause is Cause.UNKNOWN_RELEASE


def test_a_model_that_is_retired_in_its_sleep_leaves_no_folder(
    replicas: tuple[Replica, Replica], poet: Callable[..., AdapterSpec]
) -> None:
    load(poet())
    assert all("poet" in replica.names for replica in replicas)
    row = ledger().releases.running(MODEL)
    assert row
    for workload in row.workloads:
        ledger().workloads.drop(workload.name)
    for state in (ReleaseState.STOPPING, ReleaseState.ASLEEP):
        ledger().releases.move(row.id, state)
    asyncio.run(_ended(retire_model(MODEL, return_state=True)))
    assert not settings().adapters_folder(MODEL).exists()


def load(adapter: AdapterSpec) -> State[Any]:
    with channel_scope(Channel.CLI):
        return asyncio.run(_ended(load_adapter(MODEL, adapter, return_state=True)))


async def _stopped_at(reached: Event, released: Event) -> None:
    """Cancel an unload at a point of it, which another thread ends later."""
    running = asyncio.create_task(_ended(unload_adapter(MODEL, "poet", return_state=True)))
    await asyncio.to_thread(reached.wait)
    Timer(1, released.set).start()
    running.cancel()
    await asyncio.wait({running})


def unload(name: str) -> State[Any]:
    return asyncio.run(_ended(unload_adapter(MODEL, name, return_state=True)))


async def _ended(running: Any) -> State[Any]:
    state: State[Any] = await running
    await state.aresult()
    return state


def failure_of(action: Callable[[], object]) -> Failure:
    with pytest.raises(Failure) as caught:
        action()
    return caught.value


def held_by_replicas() -> list[tuple[Pin, ...]]:
    row = ledger().releases.running(MODEL)
    assert row
    return [workload.adapters for workload in row.workloads]


def assert_nothing_loaded_by_name(replicas: tuple[Replica, Replica]) -> None:
    assert all(list(replica.names) == [MODEL] for replica in replicas)
    assert held_by_replicas() == [(), ()]


def assert_nothing_is_loaded(replicas: tuple[Replica, Replica]) -> None:
    assert_nothing_loaded_by_name(replicas)
    assert list(settings().adapters_folder(MODEL).iterdir()) == []
