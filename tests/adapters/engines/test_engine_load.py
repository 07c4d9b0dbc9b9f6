"""How busy engines are: what their metrics tell, in a second, whatever they do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import repeat
from typing import cast

import pytest

from moorage.adapters.engines.engine_load import LOAD_SECONDS, EngineLoad, Metered, loads_of
from moorage.engines.base import Busy
from moorage.engines.registry import ENGINES
from moorage.spec import EngineName
from tests.adapters.engines.test_engine_stream import Send, engine
from tests.hostile_engine import DRIPPING, MISBEHAVIOURS, HostileEngine

VLLM, LLAMA, SGLANG = (
    cast(Busy, ENGINES[name].busy)
    for name in (EngineName.VLLM, EngineName.LLAMA_CPP, EngineName.SGLANG)
)
LONGEST_SECONDS = LOAD_SECONDS + 1.0
"""Room for a machine with other work."""


def metrics(busy: Busy, running: int, waiting: int, generated: int) -> str:
    """An answer; an engine without a counter of tokens leaves it out."""
    lines = [f"{busy.running} {running}", f"{busy.waiting} {waiting}"]
    return "\n".join([*lines, f"{busy.generated} {generated}"][: 3 if busy.generated else 2])


def of_sglang(decoded: int) -> str:
    """Two pipeline stages after these steps; the tokens of a request count late elsewhere."""
    tokens = 'sglang:realtime_tokens_total{mode="%s",pp_rank="%d"} %d'
    late = ["sglang:num_running_reqs 1", "sglang:num_queue_reqs 0"]
    late += ["sglang:generation_tokens_total 9"]
    prefilled = [tokens % ("prefill_compute", stage, 7 * decoded) for stage in (0, 1)]
    return "\n".join([*late, *prefilled, *(tokens % ("decode", at, decoded) for at in (0, 1))])


@pytest.mark.parametrize(
    ("busy", "answers", "load"),
    [
        (VLLM, [metrics(VLLM, 0, 0, 7)], EngineLoad(0, 0, 0.0)),
        (LLAMA, [metrics(LLAMA, 0, 0, 0)], EngineLoad(0, 0, 0.0)),
        (
            LLAMA,
            [metrics(LLAMA, 4, 9, 0)],
            EngineLoad(4, 9, None, "it counts tokens only when a request ends"),
        ),
        (
            VLLM,
            [f"{VLLM.running} 1\n{VLLM.waiting} 0"],
            EngineLoad(1, 0, None, "its metrics name no generated tokens"),
        ),
        (VLLM, ["python_info 1"], EngineLoad(why="its metrics name no requests")),
        (VLLM, [""], EngineLoad(why="its metrics answer with 404")),
        (
            LLAMA,
            ["401"],
            EngineLoad(why="its metrics answer with 401: its API key guards them"),
        ),
    ],
)
def test_an_engine_tells_its_requests(busy: Busy, answers: list[str], load: EngineLoad) -> None:
    with ExitStack() as running:
        assert loads_of([[answering(running, busy, iter(answers))]]) == [load]


@pytest.mark.parametrize(
    ("busy", "answers"),
    [
        (VLLM, [metrics(VLLM, 1, 0, 1000), metrics(VLLM, 1, 0, 1100)]),
        (SGLANG, [of_sglang(1000), of_sglang(1100)]),
    ],
    ids=["vllm", "sglang"],
)
def test_tokens_have_the_rate_between_two_answers(busy: Busy, answers: list[str]) -> None:
    began = time.monotonic()
    with ExitStack() as running:
        [load] = loads_of([[answering(running, busy, iter(answers))]])
    seconds = time.monotonic() - began
    assert (load.running, load.waiting, load.why) == (1, 0, "")
    assert load.tokens_per_second is not None
    assert 100 / seconds < load.tokens_per_second <= 100 / 0.35


def test_replicas_are_added_up_unless_one_is_silent() -> None:
    with ExitStack() as running:
        busy, idle = (
            answering(running, LLAMA, repeat(metrics(LLAMA, count, 1, 0))) for count in (3, 0)
        )
        silent = Metered(running.enter_context(HostileEngine("says nothing")).url, VLLM)
        both, one_silent, none = loads_of([[busy, idle], [idle, silent], []])
    assert both == EngineLoad(3, 2, None, "it counts tokens only when a request ends")
    assert one_silent == EngineLoad(why="no whole answer within 0.6 s")
    assert none == EngineLoad()


def test_hostile_engines_cost_no_more_than_the_deadline() -> None:
    names = [name for name in MISBEHAVIOURS if name.startswith(DRIPPING)] + ["sends for ever"]
    with ExitStack() as running:
        urls = [running.enter_context(HostileEngine(name)).url for name in names * 4]
        began = time.monotonic()
        loads = loads_of([[Metered(url, VLLM)] for url in urls])
        assert time.monotonic() - began < LONGEST_SECONDS
    assert all(load.running is None and load.why for load in loads)


def answering(running: ExitStack, busy: Busy, answers: Iterator[str]) -> Metered:
    """An engine that gives these answers; three digits are a status, nothing is not found."""

    def answer(send: Send) -> None:
        text = next(answers)
        status = (text or "404") if len(text or "404") == 3 else "200 OK"
        send(f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{text}".encode())

    return Metered(running.enter_context(engine(answer)), busy)
