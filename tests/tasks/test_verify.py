"""A replica is ready when its leader answers and all that help it live; else the cause is found."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from moorage.adapters.hosts.observation import Observation
from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.engines.workload import Workload
from moorage.readiness.protocol import Phase, Probe, Readiness
from moorage.spec import EngineName, RuntimeName
from tasks import verify as module
from tasks.verify import Watch, wait_for_replica
from tests.builders import a_profile, a_spec, a_workload

READY = Readiness(workload="leader", endpoint="http://10.0.0.1:40000", probes=())
LOST = Failure(Cause.ENGINE_EXITED, "leader: it lost the follower")
MEMORY = Failure(Cause.ENGINE_OUT_OF_MEMORY, "follower on b: no memory")
NEVER = 10_000


class Part(Watch):
    """A container that is ready, and ends, after so many looks at it."""

    def __init__(self, ready: int = NEVER, ends: int = NEVER, with_: Failure = LOST) -> None:
        self._ready, self._ends, self._error, self.looks = ready, ends, with_, 0

    async def until_ready(self) -> Readiness:
        while self.looks < self._ready:
            await self.must_live()
            await asyncio.sleep(0.001)
        return READY

    async def must_live(self) -> None:
        self.looks += 1
        if self.looks > self._ends:
            raise self._error


def outcome(leader: Part, *others: Part) -> Readiness | Failure:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LIFE_SECONDS", 0.001)
        patch.setattr(module, "SETTLE_SECONDS", 0.05)
        try:
            return asyncio.run(wait_for_replica(leader, others))
        except Failure as failure:
            return failure


def test_a_leader_alone_is_waited_for() -> None:
    assert outcome(Part(ready=3)) == READY
    assert outcome(Part(ends=3)) is LOST


def test_a_leader_answers_while_its_followers_live() -> None:
    assert outcome(Part(ready=20), Part(), Part()) == READY


@pytest.mark.parametrize(
    ("leader", "follower"),
    [
        # the follower ends while the leader loads on
        (Part(), Part(ends=3, with_=MEMORY)),
        # the leader notices first, and only knows that it lost somebody
        (Part(ends=1), Part(ends=4, with_=MEMORY)),
        # both end at once
        (Part(ends=2), Part(ends=2, with_=MEMORY)),
    ],
)
def test_the_failure_that_says_why_is_told(leader: Part, follower: Part) -> None:
    assert outcome(leader, follower) is MEMORY


def test_a_leader_that_says_why_is_not_outvoted() -> None:
    assert outcome(Part(ends=1, with_=MEMORY), Part(ends=5)) is MEMORY


def test_where_nobody_says_why_the_first_to_end_is_told() -> None:
    vague = Failure(Cause.ENGINE_EXITED, "follower on b: exit code 1")
    assert outcome(Part(), Part(ends=2, with_=vague)) is vague


def test_a_follower_that_ends_as_the_leader_gets_ready_fails_the_replica() -> None:
    follower = Part(ends=0, with_=MEMORY)
    assert outcome(Part(ready=0), follower) is MEMORY


class Restarted:
    """The runtime of a host that is away for a moment."""

    def __init__(self, fails: int) -> None:
        self._fails = fails

    def observe(self, _workload: Workload) -> Observation:
        self._fails -= 1
        if self._fails >= 0:
            raise Failure(Cause.RUNTIME_UNAVAILABLE, "gpu-1 is silent")
        return Observation(running=True, detail="running")

    def logs(self, _workload: Workload, _lines: int) -> str:
        return ""


async def test_a_host_that_is_away_for_a_moment_is_waited_for_and_named_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = list[str]()
    monkeypatch.setattr(module, "tell", notes.append)
    monkeypatch.setattr(module, "LONGEST_PAUSE_SECONDS", 0)
    monkeypatch.setattr(module, "settings", lambda: None)
    monkeypatch.setattr(module, "runtime_for", lambda *_: Restarted(fails=3))
    workload = a_workload(host="gpu-1")
    watch = Watch(a_spec(), a_profile(), ENGINES[EngineName.VLLM], workload, key="")
    await watch.must_live()
    assert len(notes) == 1
    assert notes[0].startswith("waiting up to 30 s for gpu-1: ")
    assert "gpu-1 is silent" in notes[0]


async def test_an_application_that_nobody_reaches_is_told_from_a_slow_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "settings", lambda: None)
    monkeypatch.setattr(module, "runtime_for", lambda *_: Restarted(fails=0))
    workload = a_workload(runtime=RuntimeName.RAY, endpoint="http://ray:8000")
    watch = Watch(a_spec(), a_profile(), ENGINES[EngineName.CUSTOM], workload, key="")
    listening = Probe(phase=Phase.LISTENING, deadline="warm_up_seconds")
    with pytest.raises(Failure) as raised:
        await watch._pass(listening, began=-1e9)
    assert raised.value.cause is Cause.WARM_UP_TIMEOUT
    assert "http://ray:8000" in raised.value.suggestion
    assert "`serve`" in raised.value.suggestion


async def test_a_last_request_without_time_for_an_answer_hides_no_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter([(200, dict[str, Any](data=[]))])

    async def ask(_endpoint: str, _probe: Probe, seconds: float, _key: str) -> tuple[int, Any]:
        if found := next(answers, None):
            return found
        await asyncio.sleep(seconds)
        return 0, "no whole answer"

    monkeypatch.setattr(module, "ask", ask)
    monkeypatch.setattr(module, "LONGEST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(module, "settings", lambda: None)
    monkeypatch.setattr(module, "other_listener", lambda *_: "")
    monkeypatch.setattr(module, "runtime_for", lambda *_: Restarted(fails=0))
    spec = a_spec()
    watch = Watch(spec, a_profile(), ENGINES[EngineName.VLLM], a_workload(), key="")
    [listed] = [probe for probe in watch._probes if probe.phase == Phase.LISTED]
    left = time.monotonic() - spec.readiness.deadlines.warm_up_seconds + 0.3
    with pytest.raises(Failure, match="is not listed"):
        await watch._pass(listed, began=left)


@pytest.mark.parametrize(
    ("status", "advice"), [(401, "`readiness"), (403, "API key"), (404, "`mode`")]
)
async def test_an_engine_that_wants_a_key_is_told_from_one_with_another_purpose(
    monkeypatch: pytest.MonkeyPatch, status: int, advice: str
) -> None:
    async def ask(*_: object) -> tuple[int, str]:
        return status, "who are you?"

    monkeypatch.setattr(module, "ask", ask)
    monkeypatch.setattr(module, "settings", lambda: None)
    monkeypatch.setattr(module, "other_listener", lambda *_: "")
    monkeypatch.setattr(module, "runtime_for", lambda *_: Restarted(fails=0))
    watch = Watch(a_spec(), a_profile(), ENGINES[EngineName.CUSTOM], a_workload(), key="")
    with pytest.raises(Failure, match=f"HTTP {status}: who are you") as raised:
        await watch._pass(watch._probes[-1], began=time.monotonic())
    assert raised.value.cause is Cause.BAD_ANSWER
    assert advice in raised.value.suggestion
