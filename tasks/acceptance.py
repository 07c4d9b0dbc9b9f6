"""Step acceptance: a release carries a short load before it serves, beside the one before it."""

import asyncio
import time
from collections.abc import Sequence

from moorage.adapters.engines.engine_http import Question
from moorage.adapters.engines.load_client import LoadClient
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.common.units import counted
from moorage.engines.launch import LaunchPlan, Workload, serving
from moorage.models.profile import ModelProfile
from moorage.readiness.acceptance import (
    ROUNDS,
    Acceptance,
    LoadFigures,
    Sample,
    Turn,
    judge_load,
    load_figures,
    load_request,
)
from moorage.releases.release import ReleaseRow
from moorage.spec import ModelSpec
from moorage.spec.acceptance import AcceptanceSpec
from tasks.flow_task import flow_task
from tasks.journal import step, tell
from tasks.verify import api_key

TURNS = 4
"""In a round: both releases get a part of the load each time, to meet the same disturbances."""


WARM_UP_SECONDS = 60.0
"""How long these requests may take: a release that does not answer by then is not compared with."""


@flow_task("acceptance", "acceptance of {plan.release}")
async def acceptance(
    spec: ModelSpec,
    profile: ModelProfile,
    plan: LaunchPlan,
    workloads: tuple[Workload, ...],
    old: ReleaseRow | None = None,
) -> Acceptance:
    """Load every replica, and likewise those of the release that serves meanwhile, if any.

    A missed limit is in the result, not raised.
    """
    load = spec.readiness.acceptance
    assert load, "whoever has no load is not measured"
    with step("acceptance") as note:
        now = _Loaded(spec, load, profile, serving(workloads), await in_thread(api_key, plan))
        before = await _before(load, old, plan.release)
        versus = f", and {old.id} likewise" if old and before else ""
        tell(f"{counted(load.requests, 'request')}, {load.concurrency} at a time{versus}")
        await now.warm_up(plan.release)
        turns: list[Turn] = []
        for attempt in range(1, ROUNDS + 1):
            figures, earlier = await _round(plan.release, attempt, now, before, turns)
            against = old.id if old and earlier else ""
            outcome = Acceptance(
                figures=figures,
                before=earlier,
                against=against,
                misses=judge_load(load, figures, turns if earlier else (), against),
                warn_only=load.warn_only,
                rounds=attempt,
            )
            if not outcome.misses:
                break
            tell(f"round {attempt} of {ROUNDS}: {'; '.join(outcome.misses)}")
        note.say(outcome.summary)
        if failure := _failure(outcome):
            note.fail(failure)
        return outcome


def must_carry(outcome: Acceptance) -> None:
    """Raise `ACCEPTANCE_FAILED` for a release that must not serve."""
    if failure := _failure(outcome):
        raise failure


def _failure(outcome: Acceptance) -> Failure | None:
    return Failure(Cause.ACCEPTANCE_FAILED, outcome.summary) if outcome.failed else None


class _Loaded:
    """A release under load."""

    def __init__(
        self,
        spec: ModelSpec,
        load: AcceptanceSpec,
        profile: ModelProfile,
        workloads: Sequence[Workload],
        key: str,
    ) -> None:
        self.load = load
        self._spec, self._workloads, self._key = spec, workloads, key
        self._chat = profile.has_chat_template

    async def warm_up(self, release: str) -> list[Sample]:
        """Send a few requests, which do not count."""
        seconds = min(WARM_UP_SECONDS, self.load.deadline)
        return await self.run(
            _numbers(release, 0)[: self.load.concurrency], time.monotonic() + seconds
        )

    async def run(self, numbers: Sequence[int], deadline: float) -> list[Sample]:
        """Send the requests of these numbers to each replica, until a time of the clock."""
        client = LoadClient(self.load.concurrency, deadline)
        questions = [[self._question(one, number) for number in numbers] for one in self._workloads]
        try:
            found = await asyncio.gather(*(in_thread(client.run, some) for some in questions))
        finally:
            client.stop()
        return [sample for some in found for sample in some]

    def _question(self, workload: Workload, number: int) -> Question:
        path, body = load_request(self._spec, self.load, number, chat=self._chat)
        return Question(workload.endpoint + path, "POST", body, api_key=self._key)


async def _before(load: AcceptanceSpec, old: ReleaseRow | None, release: str) -> _Loaded | None:
    """The release that serves meanwhile; None = there is none to compare with."""
    if not old or not old.release or not old.plan or not old.release.profile or not old.serving:
        return None
    key = await in_thread(api_key, old.plan)
    found = _Loaded(old.release.spec, load, old.release.profile, old.serving, key)
    problems = [sample.wrong for sample in await found.warm_up(release) if sample.wrong]
    if problems:
        tell(f"not compared with {old.id}, which does not answer: {problems[0]}")
    return None if problems else found


async def _round(
    release: str, attempt: int, now: _Loaded, before: _Loaded | None, turns: list[Turn]
) -> tuple[LoadFigures, LoadFigures | None]:
    """Load both in turns, which are added; the figures of both."""
    numbers = _numbers(release, attempt)[: now.load.requests]
    found: dict[_Loaded, list[Sample]] = {one: [] for one in (before, now) if one}
    seconds = dict.fromkeys(found, 0.0)
    deadline = time.monotonic() + now.load.deadline
    for part in range(TURNS):
        turn: dict[_Loaded, list[Sample]] = {}
        for one in found:
            begun = time.monotonic()
            turn[one] = await one.run(numbers[part::TURNS], deadline)
            found[one] += turn[one]
            seconds[one] += time.monotonic() - begun
        if before:
            turns.append(Turn(turn[now], turn[before]))
    figures = {one: load_figures(found[one], seconds[one], now.load) for one in found}
    earlier = figures[before] if before else None
    if earlier and earlier.failed:
        tell(f"not compared: the release before failed {earlier.failed} times: {earlier.problem}")
        earlier = None
    return figures[now], earlier


def _numbers(release: str, attempt: int) -> range:
    """Numbers of prompts that no engine has met: each release and each round has its own."""
    begin = (int(release.rpartition(".v")[2]) * (ROUNDS + 1) + attempt) * 10_000
    return range(begin, begin + 10_000)
