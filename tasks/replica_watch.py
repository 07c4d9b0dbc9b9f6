"""Watch the containers of one replica: its leader has to answer, and the others have to live."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from moorage.common.failures import Cause, Failure
from moorage.readiness.protocol import Readiness

POLL_SECONDS = 1.0
SETTLE_SECONDS = 3.0
"""How long the others may take to end after one has failed, for one of them may be the cause."""

VAGUE = frozenset({Cause.ENGINE_EXITED, Cause.LOAD_TIMEOUT, Cause.WARM_UP_TIMEOUT})
"""Causes that say nothing about why."""


class Watched(Protocol):
    """One container that is watched."""

    async def until_ready(self) -> Readiness:
        """Prove that it answers."""
        ...

    async def must_live(self) -> None:
        """Fail with the cause when it has ended."""
        ...


async def wait_for_replica(
    leader: Watched,
    others: Sequence[Watched],
    poll_seconds: float = POLL_SECONDS,
    settle_seconds: float = SETTLE_SECONDS,
) -> Readiness:
    """Wait until a leader answers, as long as all that help it live.

    Args:
        leader: Answers for the replica.
        others: Followers, and what else runs with them; none = it is alone.
        poll_seconds: How often the others are looked at.
        settle_seconds: How long they are looked at once one has failed.

    Raises:
        Failure: The one that explains most: where one host fails the others soon do, and say only
            that they lost it.
    """
    asking = asyncio.ensure_future(leader.until_ready())
    living = [asyncio.ensure_future(_live_on(one, poll_seconds)) for one in others]
    try:
        await asyncio.wait((asking, *living), return_when=asyncio.FIRST_COMPLETED)
        failed = [one.exception() for one in living if one.done()]
        if not any(failed):
            ready = await _result(asking, leader, others, settle_seconds)
            for other in others:
                await other.must_live()
            return ready
        first = next(error for error in failed if error)
        raise await _decisive(first, (leader, *others), settle_seconds)
    finally:
        for task in (asking, *living):
            task.cancel()


async def _result(
    asking: asyncio.Future[Readiness],
    leader: Watched,
    others: Sequence[Watched],
    settle_seconds: float,
) -> Readiness:
    try:
        return await asking
    except Failure as failure:
        if not others:
            raise
        raise await _decisive(failure, (leader, *others), settle_seconds) from None


async def _live_on(watched: Watched, poll_seconds: float) -> None:
    while True:
        await watched.must_live()
        await asyncio.sleep(poll_seconds)


async def _decisive(
    first: BaseException, every: Sequence[Watched], settle_seconds: float
) -> BaseException:
    """The first failure that says why; without one, the first that was seen."""
    if not isinstance(first, Failure) or first.cause not in VAGUE:
        return first
    left = settle_seconds
    while left > 0:
        for watched in every:
            try:
                await watched.must_live()
            except Failure as failure:
                if failure.cause not in VAGUE:
                    return failure
        pause = min(left, settle_seconds / 6)
        await asyncio.sleep(pause)
        left -= pause
    return first
