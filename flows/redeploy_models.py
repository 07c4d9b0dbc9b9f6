"""Redeploy many models in waves: those that have moved, each in a subflow, until too many fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed, Failed
from prefect.utilities.urls import url_for
from pydantic import Field

from flows.flow_context import RunLog, keep_result, requested_run
from flows.subflows import DEPLOY, deploy_subflow
from moorage.adapters.prefect.events import DRIFTED, STOPPED_EARLY, emit_model_event
from moorage.common.failures import Failure
from moorage.inventory.fleet import Fleet, at_site
from moorage.operations.redeploy.intent import (
    Intent,
    ModelOutcome,
    Redeployed,
    is_failure,
    question_of,
    summary,
)
from moorage.operations.redeploy.selection import StopAt, WaveSize, is_over, meant, waves
from moorage.releases.requester import Claim
from moorage.reports.operations_report import Links, Wave, redeployment_page
from moorage.spec import OnDrift, slug
from tasks.artifacts import LivePage
from tasks.compare import decision_scope
from tasks.context import settings
from tasks.journal import journal, listen_as
from tasks.policy import ask, granted, recorded_scope, settled_fleet
from tasks.redeploy_decisions import find_intents

Ended = State[Any]


def _run_name() -> str:
    given = flow_run.parameters
    selection = meant(given["names"], given["labels"], given["files"])
    return f"{'look at' if given['dry_run'] else 'redeploy'} {selection}"


@flow(name="redeploy-models", flow_run_name=_run_name, persist_result=False)
@keep_result
async def redeploy_models(
    names: list[str] = [],  # noqa: B006
    labels: dict[str, str] = {},  # noqa: B006
    fleet: Fleet = Fleet(),  # noqa: B008
    files: str = "",
    by_policy: bool = False,
    force: bool = False,
    wave: WaveSize = "1",
    at_once: Annotated[int, Field(ge=1, le=64)] = 4,
    pause_seconds: Annotated[int, Field(ge=0, le=86_400)] = 0,
    stop_at: StopAt = "first",
    dry_run: bool = False,
    requested_by: Claim = "",
) -> State[list[Redeployed]]:
    """Deploy models that serve once more, where what they are made of has moved.

    All are looked at first. Those with nothing to do cost no run of their own; each other one is a
    run of `deploy-model` below this one.

    Args:
        names: Models, or patterns such as `llama-*`; none = all that serve. One that is named and
            served until it failed is deployed too.
        labels: Only models that carry all these labels; a value may be a pattern.
        fleet: The hosts they may run on; without it, those of the worker, else this machine.
        files: Absolute path of a folder of specs, on the machine where this runs: what they say
            goes before what serves. Models that do not serve are left to `apply`.
        by_policy: Whether the `redeploy` section of each model says what is done. Otherwise
            everything that has moved is taken, and what does not serve is brought back.
        force: Redeploy also what has not moved.
        wave: Models in a wave: a number, or a share of those to be redeployed such as 25%.
        at_once: How many models of a wave are worked on at the same time.
        pause_seconds: How long to wait between two waves.
        stop_at: When no more is begun: `first` failure, `never`, or a share of all that failed.
        dry_run: Only say what would be done.
        requested_by: Who wants it, for the record; nobody checks it.
    """
    fleet = await settled_fleet(fleet, files)
    hosts = at_site(fleet, settings().site)
    with journal(RunLog(get_run_logger())):
        found = await find_intents(names, labels, hosts, files, by_policy=by_policy, force=force)
    ended = [one.as_it_is for one in found if one.action != OnDrift.REDEPLOY]
    todo = [one for one in found if one.action == OnDrift.REDEPLOY]
    if dry_run:
        return await _finish([*(one.if_it_were_done for one in todo), *ended], Page())
    for one in ended:
        if one.outcome == ModelOutcome.NOTIFIED:
            emit_model_event(DRIFTED, [one.model], release=one.before, why=one.why)
    refused = await _ask_approval(todo)
    left = [one for one in todo if one.model not in {other.model for other in refused}]
    page = Page([*refused, *ended])
    rollout = Rollout(fleet, at_once, stop_at, pause_seconds, force, page.refresh)
    approved = [one.model for one in left if one.needs_approval]
    with granted(approved), requested_run(requested_by):
        done = await rollout.run(waves(left, wave))
    return await _finish([*done, *refused, *ended], page, rollout.waves)


async def _ask_approval(todo: Sequence[Intent]) -> list[Redeployed]:
    """Ask once for all models that need approval; the others do not depend on the answer."""
    to_approve = [one for one in todo if one.needs_approval]
    if not to_approve:
        return []
    try:
        await ask(question_of(to_approve))
    except Failure as failure:
        return [one.failed(failure) for one in to_approve]
    return []


async def _finish(ended: Sequence[Redeployed], page: Page, waves: Sequence[Wave] = ()) -> Ended:
    await page.write(waves, ended)
    get_run_logger().info("%s", summary(ended))
    if is_failure(ended):
        return Failed(message=summary(ended), data=list(ended))
    return Completed(message=summary(ended), data=list(ended))


class Page:
    """What is shown of one run.

    Args:
        others: Models that are in no wave.
    """

    def __init__(self, others: Sequence[Redeployed] = ()) -> None:
        self._others = others
        self._live = LivePage("redeploy")

    async def refresh(self, waves: Sequence[Wave], ended: Sequence[Redeployed]) -> None:
        """Write it again, unless that was done a moment ago."""
        if self._live.is_due:
            await self.write(waves, [*ended, *self._others])

    async def write(self, waves: Sequence[Wave], ended: Sequence[Redeployed]) -> None:
        """Write it as it is now."""
        total = sum(len(wave.models) for wave in waves)
        done = sum(1 for one in ended if one.wave)
        page = redeployment_page(str(flow_run.name), waves, ended, _links)
        percent = 100.0 * done / total if total else 100.0
        await self._live.write(page.markdown(), summary(ended), percent)


def _links(one: Redeployed) -> Links:
    """Its own run, and the newest record of its releases."""
    if not one.flow_run:
        return Links()
    run = url_for("flow-run", one.flow_run) or ""
    # The only page of the UI that shows the newest artifact of a key has no address in Prefect.
    key = f"artifacts/key/release-{slug(one.model)}"
    record = run.replace(f"runs/flow-run/{one.flow_run}", key) if one.after else ""
    return Links(run=run, record=record)


OUTCOMES = {
    "done": ModelOutcome.REDEPLOYED,
    "unchanged": ModelOutcome.UNCHANGED,
    "failed": ModelOutcome.FAILED,
}

ReportProgress = Callable[[Sequence[Wave], Sequence[Redeployed]], Awaitable[None]]
"""Called with the waves, and with the models that have ended."""


@dataclass
class Rollout:
    """One redeployment under way.

    Attributes:
        fleet: The hosts that the models may run on.
        at_once: Models of a wave that are worked on at the same time.
        stop_at: When no more is begun, see `moorage.operations.redeploy.selection.StopAt`.
        pause_seconds: Between two waves.
        force: Whether a model is replaced though nothing has moved.
        report: Called whenever a model or a wave has ended.
        waves: The waves, as far as they have come.
    """

    fleet: Fleet
    at_once: int
    stop_at: str
    pause_seconds: int
    force: bool
    report: ReportProgress

    def __post_init__(self) -> None:
        self.waves: list[Wave] = []
        self._gate = asyncio.Semaphore(self.at_once)
        self._ended: list[Redeployed] = []

    async def run(self, waves: Sequence[Sequence[Intent]]) -> list[Redeployed]:
        """Go through the waves; what is not begun any more is returned too, in its order."""
        self.waves = [
            Wave(number=number, models=tuple(one.model for one in wave))
            for number, wave in enumerate(waves, 1)
        ]
        await self.report(self.waves, self._ended)
        for number, wave in enumerate(waves, 1):
            if number > 1 and not self._is_over:
                await asyncio.sleep(self.pause_seconds)
            await self._run_wave(number, wave)
        if left := [one.model for one in self._ended if one.outcome == ModelOutcome.NOT_BEGUN]:
            emit_model_event(STOPPED_EARLY, left, why=f"not begun: {self._failed} models failed")
        order = [model for wave in self.waves for model in wave.models]
        return sorted(self._ended, key=lambda one: order.index(one.model))

    @property
    def _failed(self) -> int:
        return sum(one.outcome == ModelOutcome.FAILED for one in self._ended)

    @property
    def _is_over(self) -> bool:
        return is_over(self.stop_at, self._failed, sum(len(wave.models) for wave in self.waves))

    async def _run_wave(self, number: int, wave: Sequence[Intent]) -> None:
        begin, before = time.monotonic(), len(self._ended)
        await asyncio.gather(*(self._run_model(number, intent) for intent in wave))
        took = time.monotonic() - begin
        at = number - 1
        self.waves[at] = self.waves[at].model_copy(update={"seconds": took})
        count, outcomes = len(self.waves), summary(self._ended[before:])
        get_run_logger().info("wave %d of %d, %.0f s: %s", number, count, took, outcomes)
        await self.report(self.waves, self._ended)

    async def _run_model(self, wave: int, intent: Intent) -> None:
        async with self._gate:
            if self._is_over:
                self._ended.append(self._not_begun(wave, intent))
                return
            begin = time.monotonic()
            on_record = recorded_scope(intent.submission, self.fleet)
            with listen_as(intent.model), decision_scope(intent.release), on_record:
                one = await self._deploy(wave, intent)
            one = one.model_copy(update={"seconds": time.monotonic() - begin})
            self._ended.append(one)
            get_run_logger().info(
                "%s %s in %.1f s: %s", one.model, one.outcome, one.seconds, one.message
            )
            await self.report(self.waves, self._ended)

    def _not_begun(self, wave: int, intent: Intent) -> Redeployed:
        message = f"{self._failed} failed before: stopped at {self.stop_at}"
        return _outcome(intent, wave, outcome=ModelOutcome.NOT_BEGUN, message=message)

    async def _deploy(self, wave: int, intent: Intent) -> Redeployed:
        def begin() -> Awaitable[State[Any]]:
            # A tag that was moved changes no spec, so that a redeploy for it has to be forced.
            force = self.force or intent.takes_an_image
            spec, origin = intent.spec, intent.applied_from
            return DEPLOY(spec, self.fleet, origin, force=force, return_state=True)

        ended = await deploy_subflow(intent.model, begin)
        fields = ended.model_dump(include={"message", "cause", "exit_code", "flow_run"})
        outcome, after = OUTCOMES[ended.outcome], ended.release
        return _outcome(intent, wave, outcome=outcome, after=after, **fields)


def _outcome(intent: Intent, wave: int, **fields: Any) -> Redeployed:
    return Redeployed(
        model=intent.model, wave=wave, before=intent.release, why=intent.why, **fields
    )
