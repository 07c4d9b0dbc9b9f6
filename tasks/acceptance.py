"""Step acceptance: put a short load on a new release and on the old one, in turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from moorage.adapters.engines.engine_http import Question
from moorage.adapters.engines.load_client import send_load
from moorage.adapters.system.threads import in_thread
from moorage.common.units import counted
from moorage.engines.launch import LaunchPlan
from moorage.engines.workload import Workload, serving
from moorage.models.profile import ModelProfile
from moorage.readiness.acceptance import (
    ROUNDS,
    Acceptance,
    LoadFigures,
    Sample,
    Turn,
    first_problem,
    judge_load,
    load_figures,
    load_request,
)
from moorage.releases.release_row import ReleaseRow
from moorage.spec import ModelSpec
from moorage.spec.acceptance import TURNS, AcceptanceSpec
from tasks.flow_task import flow_task
from tasks.journal import step, tell
from tasks.verify import api_key

WARM_UP_SECONDS = 60.0
"""Deadline of the warm-up; an old release that misses it is left out of the comparison."""


@flow_task("acceptance", "acceptance of {plan.release}")
async def acceptance(
    spec: ModelSpec,
    profile: ModelProfile,
    plan: LaunchPlan,
    workloads: tuple[Workload, ...],
    old: ReleaseRow | None = None,
) -> Acceptance:
    """Put a load on every replica, and on those of the old release if it serves.

    A missed limit is in the result and raises nothing.
    """
    load = spec.readiness.acceptance
    assert load, "whoever has no load is not measured"
    with step("acceptance") as note:
        key = await in_thread(api_key, plan)
        now = _Loaded(plan.release, spec, load, profile, serving(workloads), key)
        both = _Both(plan.release, now, await _before(load, old, plan.release))
        versus = f", and {both.before.release} likewise" if both.before else ""
        tell(f"{counted(load.requests, 'request')}, {load.concurrency} at a time{versus}")
        await now.warm_up(plan.release)
        for attempt in range(1, ROUNDS + 1):
            outcome = await both.measure(attempt)
            if not outcome.misses:
                break
            tell(f"round {attempt} of {ROUNDS}: {'; '.join(outcome.misses)}")
        note.say(outcome.summary)
        if outcome.failure:
            note.fail(outcome.failure)
        return outcome


async def _before(load: AcceptanceSpec, old: ReleaseRow | None, release: str) -> _Loaded | None:
    """The old release, warmed up; None = no old release to compare with."""
    if not old or not old.release or not old.plan or not old.release.profile or not old.serving:
        return None
    key = await in_thread(api_key, old.plan)
    found = _Loaded(old.id, old.release.spec, load, old.release.profile, old.serving, key)
    return found if _answers(found, await found.warm_up(release)) else None


def _answers(before: _Loaded, samples: Sequence[Sample]) -> bool:
    """Whether no request to the old release failed; else report why it is not compared with."""
    if problem := first_problem(samples):
        tell(f"not compared with {before.release}, which does not answer: {problem}")
    return not problem


class _Loaded:
    """A release under load."""

    def __init__(
        self,
        release: str,
        spec: ModelSpec,
        load: AcceptanceSpec,
        profile: ModelProfile,
        workloads: Sequence[Workload],
        key: str,
    ) -> None:
        self.release, self.load = release, load
        self._spec, self._workloads, self._key = spec, workloads, key
        self._chat = profile.has_chat_template

    async def warm_up(self, release: str) -> list[Sample]:
        """Send a few requests that are not measured."""
        few = _numbers(release, 0)[: self.load.concurrency]
        return await self.run(few, min(WARM_UP_SECONDS, self.load.deadline))

    async def run(self, numbers: Sequence[int], seconds: float) -> list[Sample]:
        """Send the requests with these numbers to each replica."""
        questions = [[self._question(one, number) for number in numbers] for one in self._workloads]
        sent = (send_load(some, self.load.concurrency, seconds) for some in questions)
        return [sample for some in await asyncio.gather(*sent) for sample in some]

    def _question(self, workload: Workload, number: int) -> Question:
        path, body = load_request(self._spec, self.load, number, chat=self._chat)
        return Question(workload.endpoint + path, "POST", body, api_key=self._key)


class _Round:
    """Samples of a release in one round, and the seconds that they took."""

    def __init__(self, loaded: _Loaded) -> None:
        self._loaded = loaded
        self._samples: list[Sample] = []
        self._seconds = 0.0

    async def turn(self, numbers: Sequence[int]) -> list[Sample]:
        """Send the requests of one turn within the rest of the deadline."""
        begun = time.monotonic()
        samples = await self._loaded.run(numbers, self._loaded.load.deadline - self._seconds)
        self._seconds += time.monotonic() - begun
        self._samples += samples
        return samples

    @property
    def figures(self) -> LoadFigures:
        """Figures of the samples so far."""
        return load_figures(self._samples, self._seconds, self._loaded.load)


class _Both:
    """A new release and, as long as it answers, the old one, loaded in turns."""

    def __init__(self, release: str, now: _Loaded, before: _Loaded | None) -> None:
        self._release, self._now, self.before = release, now, before
        self._turns: list[Turn] = []

    async def measure(self, attempt: int) -> Acceptance:
        """The outcome of one round."""
        load, now = self._now.load, _Round(self._now)
        numbers = _numbers(self._release, attempt)[: load.requests]
        before = _Round(self.before) if self.before else None
        turns = TURNS if before else 1
        for part in range(turns):
            some = numbers[part::turns]
            earlier = await before.turn(some) if self.before and before else []
            if self.before and not _answers(self.before, earlier):
                self.before = None
            current = await now.turn(some)
            if self.before:
                self._turns.append(Turn(current, earlier))
        compared, figures = self.before.release if self.before else "", now.figures
        return Acceptance(
            figures=figures,
            before=before.figures if before and compared else None,
            against=compared,
            misses=judge_load(load, figures, self._turns if compared else (), compared),
            warn_only=load.warn_only,
            rounds=attempt,
        )


def _numbers(release: str, attempt: int) -> range:
    """Prompt numbers of one round; no other round or release uses them, so no engine knows them."""
    begin = (int(release.rpartition(".v")[2]) * (ROUNDS + 1) + attempt) * 10_000
    return range(begin, begin + 10_000)
