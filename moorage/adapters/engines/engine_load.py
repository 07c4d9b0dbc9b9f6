"""How busy engines are, as their own metrics tell.

All are asked at the same time. One that works on requests is asked twice, for a counter of tokens
has a rate only over some time.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from moorage.adapters.engines.engine_http import NoAnswer, Question, ask_engine, metrics_total
from moorage.common.units import MIB
from moorage.engines.base import Busy

N = TypeVar("N", int, float)

LOAD_SECONDS, RATE_SECONDS = 1.0, 0.4
"""How long all of it may take, and how far apart the two answers are that make a rate."""

MOST_LOAD = 2 * MIB
"""Bytes of an answer; all are read at the same time."""

NO_TOKENS = "its metrics name no generated tokens"


class Metered(NamedTuple):
    """An engine that answers for a replica: its base URL, and its metrics."""

    endpoint: str
    busy: Busy


class EngineLoad(NamedTuple):
    """How busy an engine is, or all of a release; None = unknown.

    Attributes:
        running: Requests in work.
        waiting: Requests in the queue.
        tokens_per_second: Generated just now.
        why: Why something is unknown.
    """

    running: int | None = None
    waiting: int | None = None
    tokens_per_second: float | None = None
    why: str = ""


class _Counts(NamedTuple):
    at: float
    running: int | None
    waiting: int | None
    generated: int | None


def loads_of(releases: Sequence[Sequence[Metered]]) -> list[EngineLoad]:
    """How busy each release is, by its replicas' engines; takes `LOAD_SECONDS` at most."""

    async def ask_all() -> list[EngineLoad]:
        until = time.monotonic() + LOAD_SECONDS
        engines = [_load(one, until) for replicas in releases for one in replicas]
        found = iter(await asyncio.gather(*engines))
        return [_total([next(found) for _ in replicas]) for replicas in releases]

    return asyncio.run(ask_all())


async def _load(engine: Metered, until: float) -> EngineLoad:
    try:
        first = await _counts(engine, until - RATE_SECONDS)
    except NoAnswer as error:
        return EngineLoad(why=str(error))
    load = EngineLoad(first.running, first.waiting)
    if first.running is None:
        return load._replace(why="its metrics name no requests")
    if not first.running:
        return load._replace(tokens_per_second=0.0)
    if first.generated is None:
        late = "it counts tokens only when a request ends"
        return load._replace(why=late if not engine.busy.generated else NO_TOKENS)
    await asyncio.sleep(RATE_SECONDS - (time.monotonic() - first.at))
    try:
        speed = _rate(first, await _counts(engine, until))
    except NoAnswer as error:
        return load._replace(why=str(error))
    return load._replace(tokens_per_second=speed, why=NO_TOKENS if speed is None else "")


async def _counts(engine: Metered, until: float) -> _Counts:
    busy = engine.busy
    seconds = round(max(0.0, until - time.monotonic()), 1)
    answer = await ask_engine(Question(engine.endpoint + busy.path), seconds, MOST_LOAD)
    if answer.status != 200:
        guard = ": its API key guards them" if busy.guarded and answer.status == 401 else ""
        raise NoAnswer(f"its metrics answer with {answer.status}{guard}")
    text, at = answer.content.decode("ascii", "replace"), time.monotonic()
    generated = metrics_total(text, [busy.generated]) if busy.generated else None
    return _Counts(
        at, metrics_total(text, [busy.running]), metrics_total(text, [busy.waiting]), generated
    )


def _rate(first: _Counts, last: _Counts) -> float | None:
    if first.generated is None or last.generated is None:
        return None
    return max(0, last.generated - first.generated) / (last.at - first.at)


def _total(replicas: Sequence[EngineLoad]) -> EngineLoad:
    """The sum; unknown where that of one replica is."""
    reasons = {one.why: None for one in replicas if one.why}
    return EngineLoad(
        _sum([one.running for one in replicas]),
        _sum([one.waiting for one in replicas]),
        _sum([one.tokens_per_second for one in replicas]),
        "; ".join(reasons),
    )


def _sum(numbers: Sequence[N | None]) -> N | None:
    known = [one for one in numbers if one is not None]
    return sum(known) if known and len(known) == len(numbers) else None
