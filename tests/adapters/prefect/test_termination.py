"""SIGTERM ends a flow where nothing is half done, and Prefect takes it for its own."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

import pytest
from prefect.exceptions import TerminationSignal
from prefect.utilities.engine import can_ack_control_intent, capture_sigterm

from moorage.adapters.prefect import termination
from moorage.adapters.prefect.termination import cancelled_by_sigterm, is_terminating


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(termination, "_arrived", False)


async def flow(done: list[str]) -> None:
    """A flow that gets SIGTERM in the midst of a statement, as it could hold a lock there."""
    async with cancelled_by_sigterm():
        try:
            signal.raise_signal(signal.SIGTERM)
            done.append("statement ended")
            await asyncio.sleep(60)
            done.append("awaited")
        except asyncio.CancelledError:
            done.append("undone")
            raise


def run_until_terminated(work: Coroutine[Any, Any, None]) -> None:
    async def main() -> None:
        # The raised signal goes on to the handler that was there before.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with capture_sigterm():
            await work

    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(TerminationSignal):
            asyncio.run(main())
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_ends_a_flow_at_its_next_await() -> None:
    done: list[str] = []
    run_until_terminated(flow(done))
    assert done == ["statement ended", "undone"]


def test_flows_in_a_flow_end_with_it() -> None:
    first: list[str] = []
    second: list[str] = []

    async def both() -> None:
        async with cancelled_by_sigterm():
            await asyncio.gather(flow(first), flow(second))

    run_until_terminated(both())
    assert first == second == ["statement ended", "undone"]


def test_what_follows_a_flow_that_ended_is_not_cancelled() -> None:
    async def main() -> str:
        async with cancelled_by_sigterm():
            signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0.01)
        return "reported"

    with capture_sigterm():
        assert asyncio.run(main()) == "reported"


def test_who_else_cancels_a_flow_is_not_taken_for_a_signal() -> None:
    async def main() -> None:
        async with cancelled_by_sigterm():
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


def test_outside_a_flow_a_signal_raises_at_once() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with pytest.raises(TerminationSignal), capture_sigterm():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_runner_of_prefect_may_still_announce_the_end_of_a_run() -> None:
    with capture_sigterm():
        assert can_ack_control_intent()


async def failing_flow() -> None:
    """A flow that cannot undo, which is no reason to forget the signal."""
    async with cancelled_by_sigterm():
        signal.raise_signal(signal.SIGTERM)
        try:
            await asyncio.sleep(60)
        finally:
            assert is_terminating()
            raise ValueError("the ledger does not answer")


async def impatiently_stopped_flow(done: list[str]) -> None:
    """A flow that gets further signals during its undo."""
    async with cancelled_by_sigterm():
        signal.raise_signal(signal.SIGTERM)
        try:
            await asyncio.sleep(60)
        finally:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0.01)
            done.append("undone")
            task = asyncio.current_task()
            assert task
            task.cancel()  # as Ctrl-C does


def test_a_flow_that_fails_on_its_way_out_was_stopped_by_the_signal() -> None:
    run_until_terminated(failing_flow())


def test_further_signals_cut_short_neither_the_undo_nor_the_report() -> None:
    done: list[str] = []

    async def reported() -> None:
        try:
            await impatiently_stopped_flow(done)
        except TerminationSignal:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0.01)
            done.append("reported")
            raise

    run_until_terminated(reported())
    assert done == ["undone", "reported"]
