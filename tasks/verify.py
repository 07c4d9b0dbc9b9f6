"""Step verify: the readiness protocol. Fails at once when an engine dies, with the cause."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from moorage.adapters.engines.engine_http import ask
from moorage.adapters.hosts.observation import KILLED, Observation
from moorage.adapters.hosts.runtime import other_listener, runtime_for
from moorage.adapters.secrets import read_secrets, redact
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.common.units import human_seconds
from moorage.engines.base import Engine
from moorage.engines.engine_secrets import engine_secret, metrics_secret
from moorage.engines.launch import LaunchPlan
from moorage.engines.plan import CLUSTER_CAUSES
from moorage.engines.registry import ENGINES
from moorage.engines.workload import Workload
from moorage.models.profile import ModelProfile
from moorage.readiness.answers import is_final, judge
from moorage.readiness.diagnosis import diagnose
from moorage.readiness.protocol import Phase, Probe, ProbeResult, Readiness, application_probes
from moorage.reports.evidence import readiness_document
from moorage.spec import ModelSpec, RuntimeName, slug
from tasks.artifacts import show_markdown
from tasks.context import settings
from tasks.flow_task import flow_task
from tasks.journal import step, tell

R = TypeVar("R")

LIFE_SECONDS = 1.0
"""Interval of the checks that the other containers of a replica live."""

SETTLE_SECONDS = 3.0
"""How long other containers are watched after one has failed, since one may be the cause."""

SETTLE_CHECKS = 6

VAGUE = frozenset({Cause.ENGINE_EXITED, Cause.LOAD_TIMEOUT, Cause.WARM_UP_TIMEOUT})
"""Causes that do not explain the failure."""

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0
ASK_SECONDS = 5.0
"""Time-out of a health request; a real request may take its whole deadline."""

TELLING_SECONDS = 1.0
"""The last request before a deadline may get less time than this: an earlier failure says more."""

SILENT_SECONDS = 30.0
"""How long the runtime may be silent; a daemon that restarts is back by then."""

LOG_LINES = 5_000
"""Lines of a log that are searched for the cause; a failure keeps the last lines."""

WANTS_KEY = (
    "The engine wants an API key that it was not asked with. Let it serve without one, or give the"
    " key in `secrets` and name its variable in `engine.api_key_variable`, or set"
    " `readiness.probe.request: false`, so that its health path alone proves that it serves."
)


@flow_task("verify", "verify {plan.release}")
async def verify(
    spec: ModelSpec,
    profile: ModelProfile,
    plan: LaunchPlan,
    workloads: tuple[Workload, ...],
    earlier: tuple[Workload, ...] = (),
) -> tuple[Readiness, ...]:
    """Prove that every replica answers, and that the `earlier` workloads still run.

    A failure has the cause found in the engine's log, and its last lines.
    """
    with step("verify") as note:
        engine = ENGINES[plan.engine]
        key = await in_thread(api_key, plan)
        watches = [Watch(spec, profile, engine, workload, key) for workload in workloads]
        helpers = [watch for watch in watches if not watch.workload.serves]
        results = await _all(
            wait_for_replica(leader, [one for one in helpers if one.replica == leader.replica])
            for leader in watches
            if leader.workload.serves
        )
        # The first replica may have died while the last one loaded.
        watches += [Watch(spec, profile, engine, workload, key) for workload in earlier]
        await _all(watch.must_live() for watch in watches)
        page = readiness_document(plan.release, tuple(results))
        await show_markdown(f"readiness-{slug(spec.name)}", page.markdown(), page.title)
        last = [result.probes[-1] for result in results]
        note.say("; ".join(f"{one.detail} after {human_seconds(one.seconds)}" for one in last))
        return tuple(results)


async def _all(watches: Iterable[Coroutine[Any, Any, R]]) -> list[R]:
    """Wait for all watches; when one fails, cancel the others, whose workloads are stopped next."""
    waiting = [asyncio.ensure_future(watch) for watch in watches]
    try:
        return await asyncio.gather(*waiting)
    finally:
        for one in waiting:
            one.cancel()


async def wait_for_replica(leader: Watch, others: Sequence[Watch]) -> Readiness:
    """Wait until a leader answers, as long as its helpers live; else raise what explains most.

    When one host fails, the others soon fail too, and report only that they lost it.
    """
    answer = asyncio.ensure_future(leader.until_ready())
    lives = [asyncio.ensure_future(_live_on(one)) for one in others]
    try:
        await asyncio.wait((answer, *lives), return_when=asyncio.FIRST_COMPLETED)
        errors = (one.exception() for one in (*lives, answer) if one.done())
        if first := next(filter(None, errors), None):
            raise await _decisive(first, (leader, *others)) if others else first
        for other in others:
            await other.must_live()
        return answer.result()
    finally:
        for one in (answer, *lives):
            one.cancel()


async def _live_on(watched: Watch) -> None:
    while True:
        await watched.must_live()
        await asyncio.sleep(LIFE_SECONDS)


async def _decisive(first: BaseException, every: Sequence[Watch]) -> BaseException:
    """The first failure that explains itself; without one, the first failure."""
    if not isinstance(first, Failure) or first.cause not in VAGUE:
        return first
    for _ in range(SETTLE_CHECKS):
        for watched in every:
            try:
                await watched.must_live()
            except Failure as failure:
                if failure.cause not in VAGUE:
                    return failure
        await asyncio.sleep(SETTLE_SECONDS / SETTLE_CHECKS)
    return first


def api_key(plan: LaunchPlan) -> str:
    """The API key that a plan's engines require: the user's or moorage's own; empty = none."""
    return _read(engine_secret(plan))


def metrics_key(plan: LaunchPlan) -> str:
    """The API key that the engines' metrics require; empty = none."""
    return _read(metrics_secret(plan))


def _read(name: str) -> str:
    return read_secrets([name])[name] if name else ""


class Watch:
    """Watches one workload until it is ready or has failed."""

    def __init__(
        self, spec: ModelSpec, profile: ModelProfile, engine: Engine, workload: Workload, key: str
    ) -> None:
        self._spec, self.workload, self._key = spec, workload, key
        if workload.runtime == RuntimeName.RAY:
            self._causes = (*CLUSTER_CAUSES, *engine.log_causes)
            self._probes = application_probes(spec, profile, lists_models=engine.lists_models)
        else:
            self._causes, self._probes = engine.log_causes, engine.probes(spec, profile)
        self._runtime = runtime_for(workload, settings())
        self.replica, self._begin = workload.replica, time.monotonic()

    async def until_ready(self) -> Readiness:
        """Pass the probes in order; returns their results."""
        results: list[ProbeResult] = []
        phase_began, first_token, deadline = self._begin, 0.0, ""
        for probe in self._probes:
            if probe.deadline != deadline:
                deadline, phase_began = probe.deadline, time.monotonic()
            sent = time.monotonic()
            results.append(await self._pass(probe, phase_began))
            if probe.phase == Phase.ANSWERED:
                first_token = time.monotonic() - sent
        return Readiness(
            workload=self.workload.name,
            endpoint=self.workload.endpoint,
            probes=tuple(results),
            first_token_seconds=round(first_token, 3),
        )

    async def _pass(self, probe: Probe, began: float) -> ProbeResult:
        """Repeat a probe until its answer is good; fail at the deadline or when the engine dies."""
        allowed = float(getattr(self._spec.readiness.deadlines, probe.deadline))
        attempts, wrong = 0, "no request was sent"
        while (left := began + allowed - time.monotonic()) > 0:
            attempts += 1
            timeout = left if probe.phase == Phase.ANSWERED else min(left, ASK_SECONDS)
            status, answer = await self._ask(probe, timeout)
            found, kept = judge(probe, status, answer)
            await self.must_live()
            if status:
                await self._must_answer_itself()
            if not found:
                seconds = round(time.monotonic() - self._begin, 3)
                return ProbeResult(
                    phase=probe.phase, seconds=seconds, attempts=attempts, detail=redact(kept)
                )
            if is_final(probe, status):
                failure = await self._failure(Cause.BAD_ANSWER, f"{probe.path}: {found}")
                if failure.cause is Cause.BAD_ANSWER and status in (401, 403):
                    failure.suggestion = WANTS_KEY
                raise failure
            if status or attempts == 1 or timeout >= TELLING_SECONDS:
                wrong = found
            # A small share of the wait, so that readiness is seen in time.
            pause = min(LONGEST_PAUSE_SECONDS, max(FIRST_PAUSE_SECONDS, (allowed - left) / 32))
            await asyncio.sleep(min(pause, left))
        warms_up = probe.deadline == "warm_up_seconds"
        cause = Cause.WARM_UP_TIMEOUT if warms_up else Cause.LOAD_TIMEOUT
        failure = await self._failure(
            cause, f"not {probe.phase} within {allowed:g} s: {probe.path or 'connection'}: {wrong}"
        )
        if probe.phase == Phase.LISTENING and self.workload.runtime == RuntimeName.RAY:
            failure.suggestion = (
                f"Ray runs it; nothing answers at {self.workload.url}. Correct `serve` of the"
                " cluster in the fleet file, or see whether this machine may reach it."
            )
        raise failure

    async def _must_answer_itself(self) -> None:
        """Fail when the answer may come from another program that took the port."""
        if other := await in_thread(other_listener, self.workload, settings()):
            detail = f"{self._named}: {other} listens at {self.workload.endpoint} too"
            raise Failure(Cause.PORT_TAKEN, detail)

    async def _ask(self, probe: Probe, timeout: float) -> tuple[int, Any]:
        if probe.expects != "running":
            return await ask(self.workload.endpoint, probe, timeout, self._key)
        seen = await self._observed()
        return 200, {"ready": bool(seen.ready), "detail": seen.detail}

    async def must_live(self) -> None:
        """Fail with the cause when the workload has ended, even if the runtime restarted it."""
        seen = await self._observed()
        if not seen.running or seen.restarts:
            raise await self._death(seen)

    async def must_answer(self) -> None:
        """Fail when a workload that was ready has ended or leaves two requests unanswered."""
        await self.must_live()
        if not self.workload.serves:
            return
        probe, seconds = self._probes[-1], ASK_SECONDS
        if probe.phase == Phase.ANSWERED:
            seconds = float(self._spec.readiness.deadlines.warm_up_seconds)
        for _ in range(2):
            status, answer = await self._ask(probe, seconds)
            wrong, _kept = judge(probe, status, answer)
            if not wrong:
                return
            await asyncio.sleep(FIRST_PAUSE_SECONDS)
            await self.must_live()
        raise await self._failure(Cause.BAD_ANSWER, f"{probe.path}: {wrong}")

    async def _observed(self) -> Observation:
        """Observe the workload, and retry while its host is briefly unreachable."""
        give_up, announced = time.monotonic() + SILENT_SECONDS, False
        while True:
            try:
                return await in_thread(self._runtime.observe, self.workload)
            except Failure as failure:
                if not failure.cause.retryable or time.monotonic() > give_up:
                    raise
                if not announced:
                    host, limit = self.workload.host, f"{SILENT_SECONDS:g} s"
                    tell(f"waiting up to {limit} for {host}: {failure}")
                announced = True
            await asyncio.sleep(LONGEST_PAUSE_SECONDS)

    async def _death(self, seen: Observation) -> Failure:
        failure = await self._failure(Cause.ENGINE_EXITED, seen.with_exit_code)
        if seen.out_of_memory:
            named = f"{self._named}: {seen.with_exit_code}"
            return Failure(Cause.ENGINE_OUT_OF_MEMORY, named, log_tail=failure.log_tail)
        if failure.cause is Cause.ENGINE_EXITED and seen.exit_code == KILLED:
            failure.suggestion = (
                "It was killed (SIGKILL), by a person, or by the kernel because RAM ran out: not"
                " every runtime tells, but `dmesg` on the host does. Then raise `placement.ram`."
            )
        return failure

    async def _failure(self, cause: Cause, detail: str) -> Failure:
        log = await in_thread(self._runtime.logs, self.workload, LOG_LINES)
        return diagnose(log, self._causes, cause, f"{self._named}: {detail}")

    @property
    def _named(self) -> str:
        """The workload's name; for a helper, with role and host, since it has its own log."""
        one = self.workload
        return one.name if one.serves else f"{one.role} {one.name} on {one.host}"
