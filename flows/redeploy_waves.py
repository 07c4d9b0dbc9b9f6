"""Waves of deploys, one after the other, until too many failed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from prefect import get_run_logger
from prefect.client.schemas.objects import State

from flows.subflows import DEPLOY, deploy_subflow
from moorage.inventory.fleet import Fleet
from moorage.operations.redeploy.intent import Intent, ModelOutcome, Redeployed, summary
from moorage.operations.redeploy.selection import is_over
from moorage.reports.redeployment_report import Wave
from tasks.compare import decision_scope
from tasks.events import STOPPED_EARLY, emit_model_event
from tasks.journal import listen_as
from tasks.policy import recorded_scope

BECAME = {
    "done": ModelOutcome.REDEPLOYED,
    "unchanged": ModelOutcome.UNCHANGED,
    "failed": ModelOutcome.FAILED,
}

ReportProgress = Callable[[Sequence[Wave], Sequence[Redeployed]], Awaitable[None]]
"""Called with the waves, and with the models that have ended."""


class Rollout:
    """One redeployment under way.

    Args:
        fleet: The hosts that the models may run on.
        at_once: Models of a wave that are worked on at the same time.
        stop_at: When no more is begun, see `moorage.operations.redeploy.selection.StopAt`.
        pause_seconds: Between two waves.
        force: Whether a model is replaced though nothing has moved.
        report: Called whenever a model or a wave has ended.
    """

    def __init__(
        self,
        fleet: Fleet,
        at_once: int,
        stop_at: str,
        pause_seconds: int,
        *,
        force: bool,
        report: ReportProgress,
    ) -> None:
        self._fleet, self._force = fleet, force
        self._gate, self._report = asyncio.Semaphore(at_once), report
        self._stop_at, self._pause_seconds = stop_at, pause_seconds
        self._waves: list[Wave] = []
        self._ended: list[Redeployed] = []

    async def run(self, waves: Sequence[Sequence[Intent]]) -> list[Redeployed]:
        """Go through the waves; what is not begun any more is returned too, in its order."""
        self._waves = [
            Wave(number=number, models=tuple(one.model for one in wave))
            for number, wave in enumerate(waves, 1)
        ]
        await self._report(self._waves, self._ended)
        for number, wave in enumerate(waves, 1):
            if number > 1 and not self._is_over:
                await asyncio.sleep(self._pause_seconds)
            await self._go(number, wave)
        if left := [one.model for one in self._ended if one.outcome == ModelOutcome.NOT_BEGUN]:
            emit_model_event(STOPPED_EARLY, left, why=f"not begun: {self._failed} models failed")
        order = [model for wave in self._waves for model in wave.models]
        return sorted(self._ended, key=lambda one: order.index(one.model))

    @property
    def waves(self) -> Sequence[Wave]:
        """The waves, as far as they have come."""
        return self._waves

    @property
    def _failed(self) -> int:
        return sum(one.outcome == ModelOutcome.FAILED for one in self._ended)

    @property
    def _is_over(self) -> bool:
        return is_over(self._stop_at, self._failed, sum(len(wave.models) for wave in self._waves))

    async def _go(self, number: int, wave: Sequence[Intent]) -> None:
        begin, before = time.monotonic(), len(self._ended)
        await asyncio.gather(*(self._take(number, intent) for intent in wave))
        took = time.monotonic() - begin
        at = number - 1
        self._waves[at] = self._waves[at].model_copy(update={"seconds": took})
        count, outcomes = len(self._waves), summary(self._ended[before:])
        get_run_logger().info("wave %d of %d, %.0f s: %s", number, count, took, outcomes)
        await self._report(self._waves, self._ended)

    async def _take(self, wave: int, intent: Intent) -> None:
        async with self._gate:
            if self._is_over:
                self._ended.append(self._left(wave, intent))
                return
            begin = time.monotonic()
            on_record = recorded_scope(intent.submission, self._fleet)
            with listen_as(intent.model), decision_scope(intent.release), on_record:
                one = await self._deployed(wave, intent)
            one = one.model_copy(update={"seconds": time.monotonic() - begin})
            self._ended.append(one)
            get_run_logger().info(
                "%s %s in %.1f s: %s", one.model, one.outcome, one.seconds, one.message
            )
            await self._report(self._waves, self._ended)

    def _left(self, wave: int, intent: Intent) -> Redeployed:
        return Redeployed(
            model=intent.model,
            outcome=ModelOutcome.NOT_BEGUN,
            wave=wave,
            before=intent.release,
            why=intent.why,
            message=f"{self._failed} failed before: stopped at {self._stop_at}",
        )

    async def _deployed(self, wave: int, intent: Intent) -> Redeployed:
        def begin() -> Awaitable[State[Any]]:
            # A tag that was moved changes no spec, so that a redeploy for it has to be forced.
            force = self._force or intent.takes_an_image
            spec, origin = intent.spec, intent.applied_from
            return DEPLOY(spec, self._fleet, origin, force=force, return_state=True)

        ended = await deploy_subflow(intent.model, begin)
        return Redeployed(
            model=intent.model,
            outcome=BECAME[ended.outcome],
            wave=wave,
            before=intent.release,
            after=ended.release,
            why=intent.why,
            message=ended.message,
            cause=ended.cause,
            exit_code=ended.exit_code,
            flow_run=ended.flow_run,
        )
