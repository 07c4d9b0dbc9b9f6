"""Redeploy many models that have drifted, in waves, each in a subflow, until too many fail."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated, Any

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed, Failed
from pydantic import Field

from flows.dry_run import would_be
from flows.flow_context import NO_RESULT, RunLog, keep_result, parameters_digest, requested_run
from flows.subflows import deploy_subflow
from moorage.adapters.ledger.locks import LockHeld
from moorage.adapters.ledger.transitions import Author, writing_as
from moorage.adapters.prefect.current_run import api_url
from moorage.adapters.prefect.events import DRIFTED, STOPPED_EARLY, emit_model_event
from moorage.adapters.prefect.pages import record_page, run_page
from moorage.inventory.fleet import Fleet
from moorage.operations.redeploy.intent import Intent, ModelOutcome, Redeployed, is_failure, summary
from moorage.operations.redeploy.selection import Selection, StopAt, WaveSize, is_over, meant, waves
from moorage.releases.requester import Claim
from moorage.reports.form_parameters import THIS_MACHINE, FleetParameter
from moorage.reports.operations_report import Links, Wave, redeployment_page
from moorage.spec import OnDrift, slug
from tasks.artifacts import LivePage
from tasks.compare import decision_scope
from tasks.journal import journal, listen_as
from tasks.map_hosts import gather_all
from tasks.policy import granted, recorded_scope, settled_fleet
from tasks.redeploy_decisions import ask_approval, find_intents, sole_watch


def _run_name() -> str:
    given = flow_run.parameters
    selection = meant(given["names"], given["labels"], given["files"])
    return f"{'look at' if given['dry_run'] else 'redeploy'} {selection}"


@flow(name="redeploy-models", flow_run_name=_run_name, **NO_RESULT)
@keep_result
async def redeploy_models(
    names: list[str] = [],  # noqa: B006
    labels: dict[str, str] = {},  # noqa: B006
    fleet: FleetParameter = THIS_MACHINE,
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
    """Redeploy models that serve or sleep, whose branch, image or file has changed.

    Each is a run of `deploy-model` below this one; a model without changes makes no run. One run by
    policy goes on at a time, also while it waits for approval: a second one that the same
    deployment begins with the same parameters ends at once.

    Args:
        names: Models, or patterns such as `llama-*`; none = all that serve or sleep. A named
            model that served until it failed is redeployed too.
        labels: Only models with all these labels; a value may be a pattern.
        fleet: The hosts on which they may run. Default: the worker's fleet, else this machine.
        files: Absolute path of a folder of specs on the machine where this runs; they replace the
            recorded specs. Models that neither serve nor sleep are left to `apply`.
        by_policy: Whether to follow the `redeploy` section of each model. Otherwise every change is
            taken, and models whose engines died are brought back.
        force: Also redeploy models without changes.
        wave: Models in a wave: a number, or a share of the models to redeploy, such as 25%.
        at_once: Models of a wave that are deployed at the same time.
        pause_seconds: Seconds between two waves.
        stop_at: When to stop: at the `first` failure, `never`, or at a share of failures (`20%`).
        dry_run: Only show the plan.
        requested_by: The requester, for the record; not verified.
    """
    fleet = await settled_fleet(fleet, files)
    rollout = Rollout(fleet, at_once, stop_at, pause_seconds, force)
    selection = Selection(names, labels, files, by_policy, force)
    watches = by_policy and not dry_run
    try:
        async with sole_watch(parameters_digest()) if watches else nullcontext():
            with journal(RunLog(get_run_logger())):
                found = await find_intents(selection, fleet)
            return await rollout.run(found, wave, requested_by, dry_run=dry_run)
    except LockHeld as held:
        return Completed(name="Skipped", message=f"skipped: {held.detail}", data=[])


@dataclass
class Rollout:
    """A running redeployment, with its live page."""

    fleet: Fleet
    at_once: int
    stop_at: str
    pause_seconds: int
    force: bool

    def __post_init__(self) -> None:
        self._waves: list[Wave] = []
        self._ended: list[Redeployed] = []
        self._others: list[Redeployed] = []
        self._gate = asyncio.Semaphore(self.at_once)
        self._page = LivePage("redeploy")

    async def run(
        self, found: Sequence[Intent], wave: str, requested_by: str, *, dry_run: bool
    ) -> State[Any]:
        """Redeploy the intended models wave by wave; returns the final state of the flow run."""
        if dry_run:
            return await self._finish(would_be(found))
        todo = [one for one in found if one.action == OnDrift.REDEPLOY]
        self._others = [one.as_it_is for one in found if one.action != OnDrift.REDEPLOY]
        for one in self._others:
            if one.outcome == ModelOutcome.NOTIFIED:
                emit_model_event(DRIFTED, [one.model], release=one.before, why=one.why)
        with requested_run(requested_by) as requester:
            with writing_as(Author(requested_by=requester.summary)):
                approval, refused = await ask_approval(todo)
            self._others = [*refused, *self._others]
            left = [one for one in todo if one.model not in {other.model for other in refused}]
            with granted([one.model for one in left if one.needs_approval], approval):
                return await self._finish(await self._run_waves(waves(left, wave)))

    async def _run_waves(self, waves: Sequence[Sequence[Intent]]) -> list[Redeployed]:
        """Run the waves; returns the outcomes of all models in order, also of those not begun."""
        self._waves = [
            Wave(number=number, models=tuple(one.model for one in wave))
            for number, wave in enumerate(waves, 1)
        ]
        await self._show()
        for number, wave in enumerate(waves, 1):
            if number > 1 and not self._is_over:
                await asyncio.sleep(self.pause_seconds)
            await self._run_wave(number, wave)
        if left := [one.model for one in self._ended if one.outcome == ModelOutcome.NOT_BEGUN]:
            emit_model_event(STOPPED_EARLY, left, why=f"not begun: {self._failed} models failed")
        order = [model for wave in self._waves for model in wave.models]
        return sorted(self._ended, key=lambda one: order.index(one.model))

    async def _show(self) -> None:
        if self._page.is_due:
            await self._write([*self._ended, *self._others])

    async def _write(self, ended: Sequence[Redeployed]) -> None:
        total = sum(len(wave.models) for wave in self._waves)
        done = sum(1 for one in ended if one.wave)
        page = redeployment_page(str(flow_run.name), self._waves, ended, _links)
        percent = 100.0 * done / total if total else 100.0
        await self._page.write(page.markdown(), summary(ended), percent)

    async def _finish(self, done: Sequence[Redeployed]) -> State[Any]:
        ended = [*done, *self._others]
        await self._write(ended)
        get_run_logger().info("%s", summary(ended))
        return (Failed if is_failure(ended) else Completed)(message=summary(ended), data=ended)

    @property
    def _failed(self) -> int:
        return sum(one.outcome == ModelOutcome.FAILED for one in self._ended)

    @property
    def _is_over(self) -> bool:
        return is_over(self.stop_at, self._failed, sum(len(wave.models) for wave in self._waves))

    async def _run_wave(self, number: int, wave: Sequence[Intent]) -> None:
        begin, before = time.monotonic(), len(self._ended)
        await gather_all(*(self._run_model(number, intent) for intent in wave))
        took = time.monotonic() - begin
        ended = self._waves[number - 1].model_copy(update={"seconds": took})
        self._waves[number - 1] = ended
        count, outcomes = len(self._waves), summary(self._ended[before:])
        get_run_logger().info("wave %d of %d, %.0f s: %s", number, count, took, outcomes)
        await self._show()

    async def _run_model(self, wave: int, intent: Intent) -> None:
        async with self._gate:
            if self._is_over:
                why = f"{self._failed} failed before: stopped at {self.stop_at}"
                left = intent.outcome(ModelOutcome.NOT_BEGUN, wave=wave, message=why)
                self._ended.append(left)
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
            await self._show()

    async def _deploy(self, wave: int, intent: Intent) -> Redeployed:
        # A moved image tag changes no spec, so a redeploy for it has to be forced.
        force = self.force or intent.takes_an_image
        ended = await deploy_subflow(intent.spec, self.fleet, intent.applied_from, force=force)
        fields = ended.model_dump(include={"message", "cause", "exit_code", "flow_run"})
        outcome = "redeployed" if ended.outcome == "done" else ended.outcome
        return intent.outcome(ModelOutcome(outcome), wave=wave, after=ended.release, **fields)


def _links(one: Redeployed) -> Links:
    if not one.flow_run:
        return Links()
    api = api_url()
    record = record_page(api, f"release-{slug(one.model)}") if one.after else ""
    return Links(run=run_page(api, one.flow_run), record=record)
