"""Steps gate and canary: tests that the first replicas must pass before more are started."""

import asyncio
import time

from moorage.adapters.engines.engine_http import ask
from moorage.adapters.system.process import has_match
from moorage.adapters.system.threads import in_thread, run_uninterrupted
from moorage.common.failures import Cause, Failure
from moorage.engines.engine_secrets import engine_secret
from moorage.engines.launch import LaunchPlan
from moorage.engines.registry import ENGINES
from moorage.engines.workload import Workload, serving
from moorage.models.profile import ModelProfile
from moorage.readiness.protocol import Phase, Probe
from moorage.readiness.smoke_test import (
    Answer,
    SmokeTestResult,
    comparable,
    gate_failure,
    gate_of,
    judge_answer,
    read_answer,
    request_of,
    speed_of,
)
from moorage.releases.release import Release
from moorage.releases.routing import Canary
from moorage.spec import Mode, ModelSpec, PromptSpec, ReplaceStrategy
from tasks.context import routes
from tasks.flow_task import flow_task
from tasks.journal import step, tell
from tasks.verify import Watch, api_key

ROUNDS = 3
"""Attempts for a replica that is too slow, since a single measurement is noisy."""

POLL_SECONDS = 1.0


@flow_task("gate", "gate {plan.release}")
async def gate(
    spec: ModelSpec,
    profile: ModelProfile,
    plan: LaunchPlan,
    workloads: tuple[Workload, ...],
    before: Release | None = None,
) -> tuple[SmokeTestResult, ...]:
    """Send all golden prompts to every replica; a wrong answer is in the result and not raised.

    Sends each replica one request at a time, to measure its speed undisturbed, and compares that
    with the speed of the old release.
    """
    with step("gate") as note:
        key = await in_thread(api_key, plan)
        tests = (_test_replica(spec, profile, one, key, before) for one in serving(workloads))
        gates = tuple(await asyncio.gather(*tests))
        note.say("; ".join(one.summary for one in gates))
        if failure := gate_failure(gates):
            note.fail(failure)
        return gates


def must_talk(spec: ModelSpec, profile: ModelProfile) -> None:
    """Raise `BAD_SPEC` for prompts or a load on a model that does not generate text."""
    for field in ("prompts", "acceptance"):
        if getattr(spec.readiness, field) and profile.mode != Mode.COMPLETION:
            detail = f"readiness.{field}: the model serves {profile.mode}, it answers no prompts"
            raise Failure(Cause.BAD_SPEC, detail, suggestion=f"Leave `readiness.{field}` out.")


async def _test_replica(
    spec: ModelSpec, profile: ModelProfile, workload: Workload, key: str, before: Release | None
) -> SmokeTestResult:
    """Send all prompts to one replica; if only the speed is wrong, repeat a few times."""
    ready, old = spec.readiness, None
    if before and comparable(ready.prompts, before.spec.readiness.prompts):
        speed = speed_of(before.gate)
        old = (before.id, speed) if speed else None
    least = ready.compare.min_tokens_per_second_ratio
    for _ in range(ROUNDS):
        answers = [await _ask(spec, profile, workload, key, prompt) for prompt in ready.prompts]
        found = gate_of(workload.name, answers, before=old, least=least)
        if not found.wrong or any(answer.wrong for answer in answers):
            break
    return found


async def _ask(
    spec: ModelSpec, profile: ModelProfile, workload: Workload, key: str, prompt: PromptSpec
) -> Answer:
    path, body = request_of(spec, prompt, chat=profile.has_chat_template)
    allowed = prompt.max_seconds or spec.readiness.deadlines.warm_up_seconds
    probe = Probe(
        phase=Phase.ANSWERED, deadline="warm_up_seconds", method="POST", path=path, body=body
    )
    began = time.monotonic()
    try:
        # The client's time-out applies to each read; this one to the answer as a whole.
        async with asyncio.timeout(allowed):
            reply = await ask(workload.endpoint, probe, allowed, key)
    except TimeoutError:
        reply = 0, f"no answer within {allowed:g} s"
    seconds = time.monotonic() - began
    back = read_answer(*reply)
    found = None if back.wrong else await in_thread(has_match, prompt.expect, back.content)
    return judge_answer(prompt, back, seconds, found)


def is_canary(draft: Release, before: Release | None) -> bool:
    """Whether a share of a release that replaces another starts first and is watched.

    A rollback needs no canary: its release has served before and is often urgent.
    """
    wanted = draft.spec.replace.strategy == ReplaceStrategy.CANARY
    return wanted and before is not None and not draft.rolled_back_to


@flow_task("canary", "canary of {plan.release}")
async def canary(
    spec: ModelSpec, profile: ModelProfile, plan: LaunchPlan, workloads: tuple[Workload, ...]
) -> None:
    """Watch the replicas that started first, for `replace.canary_seconds`.

    Meanwhile gateways send them their share of requests, until the undo of the launch if it fails.
    The failure has the cause in the engine's log, else `BAD_ANSWER`.
    """
    seconds = spec.replace.canary_seconds
    with step("canary") as note:
        key = await in_thread(api_key, plan)
        watches = [Watch(spec, profile, ENGINES[plan.engine], one, key) for one in workloads]
        tell(f"{len(workloads)} started; watched for {seconds} s before the rest starts")
        traffic = Canary(share=spec.replace.canary_share, key_secret=engine_secret(plan))
        await run_uninterrupted(routes().share, plan.release, traffic)
        rounds, give_up = 0, time.monotonic() + seconds
        while True:
            for watch in watches:
                await watch.must_answer()
            rounds += 1
            left = give_up - time.monotonic()
            if left <= 0:
                break
            await asyncio.sleep(min(POLL_SECONDS, left))
        # The other replicas load now, and must not get requests.
        await run_uninterrupted(routes().share, plan.release, None)
        note.say(f"lived and answered {rounds} times in {seconds} s")
