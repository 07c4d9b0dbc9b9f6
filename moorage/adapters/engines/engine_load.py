"""Load of engines, from their own metrics.

All engines are queried at the same time. An engine with running requests is queried twice, since
tokens per second need two readings of the token counter.
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
"""Limit for all queries together, and time between the two readings for a rate."""

MOST_LOAD = 2 * MIB
"""Most bytes of an answer; all answers are in memory at the same time."""

NO_TOKENS = "its metrics name no generated tokens"


class Metered(NamedTuple):
    """The engine of a replica: its base URL, and the metrics that tell its load."""

    endpoint: str
    busy: Busy


class EngineLoad(NamedTuple):
    """Load of an engine, or of all engines of a release; None = unknown.

    Attributes:
        running: Requests being processed.
        waiting: Requests in the queue.
        tokens_per_second: Rate of generated tokens during the measurement.
        why: Why a value is unknown.
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
    """Load of each release, from its replicas' engines; takes `LOAD_SECONDS` at most."""

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
    """Sum over replicas; a value is unknown if it is unknown for one replica."""
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
