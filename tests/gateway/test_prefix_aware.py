"""A real Envoy that sends prompts that begin alike to the same replica."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import httpx
import pytest

from moorage.gateway.routes import PREFIX_HEADER
from moorage.gateway.table import Backend, ModelRoute, split
from moorage.spec.routing import Routing
from tests.gateway.conftest import RunningGateway
from tests.gateway.engine import TestEngine
from tests.gateway.tables import backend, model
from tests.waiting import until

pytestmark = pytest.mark.process

Message = dict[str, object]
SYSTEM: Message = {"role": "system", "content": 'You say "user", and \\"role\\": \\"user\\". ' * 50}


def prefix_aware(release: str, *engines: TestEngine) -> ModelRoute:
    return model("llama", prefix_aware_backend(release, *engines))


def prefix_aware_backend(release: str, *engines: TestEngine) -> Backend:
    ports = [engine.port for engine in engines]
    return backend(release, *ports).model_copy(update={"routing": Routing.PREFIX_AWARE})


def engines(stack: ExitStack, *names: str) -> list[TestEngine]:
    return [stack.enter_context(TestEngine(name)) for name in names]


def question(text: str) -> list[Message]:
    return [SYSTEM, {"role": "user", "content": text}]


def reply(text: str) -> list[Message]:
    return [{"role": "assistant", "content": text}, {"role": "user", "content": "Go on."}]


def test_all_turns_of_a_conversation_go_to_one_replica_and_conversations_to_all(
    gateway: RunningGateway,
) -> None:
    with ExitStack() as stack:
        gateway.serve(prefix_aware("llama-1", *engines(stack, "one", "two", "three")))
        first: Counter[str] = Counter()
        for at in range(60):
            turns = question(f'Question "{at}" \\')
            replica = gateway.ask("llama", messages=turns).json()["by"]
            first[replica] += 1
            for turn in range(3):
                turns = [*turns, *reply(f"{turn}: " + "é" * turn)]
                assert gateway.ask("llama", messages=turns).json()["by"] == replica
    assert set(first) == {"one", "two", "three"}
    assert min(first.values()) >= 8


def test_each_of_many_long_instructions_stays_with_one_replica(gateway: RunningGateway) -> None:
    with ExitStack() as stack:
        gateway.serve(prefix_aware("llama-1", *engines(stack, "one", "two", "three")))
        replicas: dict[str, set[str]] = defaultdict(set)
        for at in range(160):
            application = f"application {at % 20}"
            system: Message = {"role": "system", "content": application + " is helpful" * 100}
            messages: list[Message] = [system, {"role": "user", "content": f"question {at}"}]
            by = gateway.ask("llama", messages=messages).json()["by"]
            if at >= 40:  # until then it does not know yet that there are many
                replicas[application].add(by)
    assert {len(each) for each in replicas.values()} == {1}
    assert set().union(*replicas.values()) == {"one", "two", "three"}


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ({"prompt": "x" * 1100 + "a"}, {"prompt": "x" * 1100 + "b"}, True),
        ({"prompt": "a"}, {"prompt": "b"}, False),
        ({"prompt": [1, 2, 3]}, {"prompt": [1, 2, 4]}, False),
        ({"input": "a", "stream": False}, {"stream": False, "input": "a"}, True),
        (
            {"messages": [{"content": "a", "role": "user"}]},
            {"messages": [{"content": "a", "role": "user"}, *reply("b")]},
            True,
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "a]"}]}]},
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "a]b"}]}]},
            False,
        ),
        ({"messages": question("a")}, {"messages": question("b")}, False),
        ({"messages": [SYSTEM]}, {"messages": [SYSTEM], "user": "ann"}, True),
    ],
)
def test_prompts_have_the_same_key_where_they_begin_alike(
    gateway: RunningGateway, one: dict[str, object], other: dict[str, object], alike: bool
) -> None:
    with ExitStack() as stack:
        replicas = engines(stack, "one", "two")
        gateway.serve(prefix_aware("llama-1", *replicas))
        for body in (one, other):
            forged = {PREFIX_HEADER: "chosen by the caller"}
            given = {"model": "llama", **body}
            answer = gateway.http.post("/v1/chat/completions", json=given, headers=forged)
            assert answer.is_success
        keys = [head[PREFIX_HEADER] for each in replicas for _, head, _ in each.requests]
    assert all(len(key) == 8 for key in keys)
    assert (len(set(keys)) == 1) == alike


@pytest.mark.parametrize(
    "content", [b"{}", b'{"messages": ', b'{"prompt": "\\', b'{"messages":[{"role":"user"', b"\xff"]
)
def test_a_body_without_a_prompt_is_the_engines_to_refuse(
    gateway: RunningGateway, content: bytes
) -> None:
    with ExitStack() as stack:
        replicas = engines(stack, "one", "two")
        gateway.serve(prefix_aware("llama-1", *replicas))
        body = content if content != b"{}" else b'{"model": "llama"}'
        kind = {"content-type": "application/json"}
        status = gateway.http.post("/v1/chat/completions", content=body, headers=kind).status_code
        assert gateway.ask("llama", prompt="a").is_success
    assert status == (200 if content == b"{}" else 400)


def test_a_body_that_is_long_before_its_prompt_is_served(gateway: RunningGateway) -> None:
    with ExitStack() as stack:
        gateway.serve(prefix_aware("llama-1", *engines(stack, "one", "two")))
        far = gateway.ask("llama", tools=['"{[' * 1_000_000], messages=question("a"))
    assert far.is_success


def test_a_replica_that_dies_fails_no_request_and_its_prompts_go_to_all_others(
    gateway: RunningGateway,
) -> None:
    with ExitStack() as stack:
        others = engines(stack, "two", "three")
        with TestEngine("one") as dies:
            gateway.serve(prefix_aware("llama-1", dies, *others))
            before = by_prompt(gateway, 60)
        after = by_prompt(gateway, 60)
    moved = [at for at, replica in enumerate(before) if replica == "one"]
    assert {after[at] for at in moved} == {"two", "three"}
    stayed = [at for at, replica in enumerate(before) if replica == after[at]]
    assert len(stayed) > 30


def by_prompt(gateway: RunningGateway, count: int) -> list[str]:
    answers = [gateway.ask("llama", prompt=f"question {at}") for at in range(count)]
    return [answer.json()["by"] for answer in answers]


def test_a_beginning_that_many_ask_for_at_once_overloads_no_replica(
    gateway: RunningGateway,
) -> None:
    with ExitStack() as stack:
        replicas = [
            stack.enter_context(TestEngine(name, tokens=1000, pause=0.05))
            for name in ("one", "two", "three")
        ]
        gateway.serve(prefix_aware("llama-1", *replicas))
        body = {"model": "llama", "prompt": "the same", "stream": True}
        for _ in range(12):
            stack.enter_context(gateway.http.stream("POST", "/v1/completions", json=body))
        until(lambda: sum(len(each.requests) for each in replicas) == 12)
        most = max(len(each.requests) for each in replicas)
    assert most <= 6  # 125 % of the average of 4, rounded up


def test_a_replacement_under_load_fails_no_request(gateway: RunningGateway) -> None:
    ended, failed, answers = threading.Event(), [], Counter[str]()

    def ask(caller: int) -> None:
        with httpx.Client(base_url=gateway.http.base_url, timeout=30) as http:
            while not ended.is_set():
                body = {"model": "llama", "messages": question(f"{caller}")}
                answer = http.post("/v1/chat/completions", json=body)
                if answer.is_success:
                    answers[answer.json()["by"]] += 1
                else:
                    failed.append(answer.text)

    def is_served(by: list[TestEngine]) -> bool:
        return bool(failed) or sum(answers[engine.name] for engine in by) > 20

    with ExitStack() as stack:
        old, new = engines(stack, "a", "b"), engines(stack, "c", "d")
        gateway.serve(prefix_aware("llama-1", *old))
        pool = stack.enter_context(ThreadPoolExecutor(6))
        stack.callback(ended.set)
        callers = [pool.submit(ask, at) for at in range(6)]
        for release in range(2, 10):
            answers.clear()
            gateway.serve(prefix_aware(f"llama-{release}", *new))
            until(partial(is_served, new))
            old, new = new, old
        ended.set()
        for caller in callers:
            caller.result(30)
    assert not failed


def test_a_canary_is_asked_by_prefix_where_its_own_spec_says_so(gateway: RunningGateway) -> None:
    with ExitStack() as stack:
        old, new = engines(stack, "a", "b"), engines(stack, "c", "d")
        serving = backend("llama-1", *(engine.port for engine in old))
        canary = prefix_aware_backend("llama-2", *new).model_copy(update={"stand_in": "llama-1"})
        gateway.serve(model("llama", *split(serving, canary, 0.5)))
        for _ in range(40):
            assert gateway.ask("llama", prompt="the same").is_success
    assert all(engine.requests for engine in old)
    assert sorted(bool(engine.requests) for engine in new) == [False, True]
