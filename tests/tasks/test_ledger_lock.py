"""Who is interrupted leaves no lock behind, and no second flow cleans up at the same time."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from moorage.adapters.system.threads import in_thread
from tasks import compare
from tasks.compare import sole_flow
from tasks.context import ledger
from tests.tasks.test_launch import on, turn
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("own_home")


async def works_on_tiny() -> None:
    async with sole_flow("tiny", "run"):
        await asyncio.sleep(60)


async def test_who_is_cancelled_while_waiting_for_a_lock_does_not_get_it_later() -> None:
    with ledger().locks.holding("tiny", wait_seconds=0, note="the first"):
        waiting = asyncio.create_task(works_on_tiny())
        await asyncio.sleep(0.3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    waits = [one for one in threading.enumerate() if "work" in one.name]
    await in_thread(until, lambda: not any(one.is_alive() for one in waits))
    assert not ledger().locks.is_held("tiny")


async def test_who_is_cancelled_while_cleaning_up_keeps_the_lock_until_that_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, may_end, seen = threading.Event(), threading.Event(), list[bool]()

    def clean_up(*_: object, **__: object) -> None:
        begun.set()
        may_end.wait(5)
        seen.append(ledger().locks.is_held("tiny"))

    monkeypatch.setattr(compare, "recover_all", clean_up)
    working = asyncio.create_task(works_on_tiny())
    await in_thread(begun.wait, 5)
    working.cancel()
    threading.Timer(0.2, may_end.set).start()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert seen == [True]
    assert not ledger().locks.is_held("tiny")


async def test_who_is_cancelled_while_taking_its_turn_has_none_when_it_is_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine, begun = turn("tiny.v1", on("gpu-1:0")), threading.Event()
    take = ledger().locks.take_all

    def slowly(*arguments: Any) -> object:
        begun.set()
        threading.Event().wait(0.3)
        return take(*arguments)

    monkeypatch.setattr(ledger().locks, "take_all", slowly)
    taking = asyncio.create_task(mine._take())
    await in_thread(begun.wait, 5)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    ledger().locks.drop(mine._token)
    await asyncio.sleep(0.5)
    assert not ledger().locks.is_held("start:gpu-1:cuda:0")
