"""Waves of deploys, one after the other, until too many failed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from prefect import get_run_logger
from prefect.client.schemas.objects import State
from prefect.exceptions import PrefectHTTPStatusError

from flows.deploy_model import deploy_model
from flows.outcome import outcome_of
from moorage.failures import Cause, Failure
from moorage.fleet import Fleet
from moorage.redeploy.intent import Intent
from moorage.redeploy.outcome import Became, Redeployed
from moorage.redeploy.waves import is_over
from tasks.journal import heard_as
from tasks.signals import STOPPED_EARLY, signal

BECAME = {
    "done": Became.REDEPLOYED,
    "unchanged": Became.UNCHANGED,
    "failed": Became.FAILED,
}


class Rollout:
    """One redeployment under way.

    Args:
        fleet: The hosts that the models may run on.
        at_once: Models of a wave that are worked on at the same time.
        stop_at: When no more is begun, see `moorage.redeploy.waves.StopAt`.
        total: Models of all waves.
        pause_seconds: Between two waves.
        force: Whether a model is replaced though nothing has moved.
    """

    def __init__(
        self,
        fleet: Fleet,
        at_once: int,
        stop_at: str,
        total: int,
        pause_seconds: int,
        *,
        force: bool,
    ) -> None:
        self._fleet, self._force = fleet, force
        self._gate = asyncio.Semaphore(at_once)
        self._stop_at, self._total, self._failed = stop_at, total, 0
        self._pause_seconds = pause_seconds

    async def run(self, waves: Sequence[Sequence[Intent]]) -> list[Redeployed]:
        """Go through the waves; what is not begun any more is told too."""
        ended: list[Redeployed] = []
        for number, wave in enumerate(waves, 1):
            if number > 1 and not self._is_over:
                await asyncio.sleep(self._pause_seconds)
            ended += await asyncio.gather(*(self._take(number, intent) for intent in wave))
        if left := [one.model for one in ended if one.outcome == Became.NOT_BEGUN]:
            signal(STOPPED_EARLY, left, why=f"not begun: {self._failed} models failed")
        return ended

    @property
    def _is_over(self) -> bool:
        return is_over(self._stop_at, self._failed, self._total)

    async def _take(self, wave: int, intent: Intent) -> Redeployed:
        async with self._gate:
            begin = time.monotonic()
            with heard_as(intent.model):
                one = await self._deployed(wave, intent)
            self._failed += one.outcome == Became.FAILED
            get_run_logger().info("wave %d: %s %s: %s", wave, one.model, one.outcome, one.message)
            return one.model_copy(update={"seconds": time.monotonic() - begin})

    async def _deployed(self, wave: int, intent: Intent) -> Redeployed:
        own = Redeployed(
            model=intent.model,
            outcome=Became.NOT_BEGUN,
            wave=wave,
            before=intent.release,
            why=intent.why,
            message=f"{self._failed} failed before: stopped at {self._stop_at}",
        )
        if self._is_over:
            return own
        try:
            # A tag that was moved changes no spec, so that a redeploy for it has to be forced.
            state: State[Any] = await deploy_model(
                intent.spec,
                self._fleet,
                intent.applied_from,
                force=self._force or intent.takes_an_image,
                return_state=True,
            )
        except PrefectHTTPStatusError as error:  # no run of it came to be; the others go on
            failure = Failure(Cause.SERVER_UNAVAILABLE, str(error))
            return intent.failed(failure).model_copy(update={"wave": wave})
        ended = await outcome_of(intent.model, "deploy", state)
        told = {"outcome": BECAME[ended.outcome], "message": ended.message, "after": ended.release}
        return own.model_copy(
            update={**told, "cause": ended.cause, "exit_code": ended.exit_code},
        )
