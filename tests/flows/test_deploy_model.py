"""The order of a deploy and of its starts, with steps that only say what they would do."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext, suppress
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from flows import deploy_model as flow
from flows.deploy_model import start_replicas
from flows.dry_run import ReleaseSource
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.flags import Flag
from moorage.engines.labels import LABEL_REPLICA
from moorage.engines.launch import LaunchPlan, planned_workload
from moorage.engines.recovery import Correction
from moorage.engines.workload import Workload
from moorage.inventory.fleet import Fleet
from moorage.readiness.protocol import Readiness
from moorage.readiness.smoke_test import SmokeTestResult
from moorage.releases.release import Release
from moorage.spec import ModelSpec
from tasks.journal import Journal
from tasks.policy import granted_as_it_ran
from tasks.release import ReleaseDraft
from tests.builders import a_container, a_plan, a_profile, a_release, a_row, a_spec
from tests.tasks.test_compare import CAREFUL, ran

pytestmark = pytest.mark.usefixtures("own_home")

LENGTH = "--max-model-len"
REFUSES = Failure(
    Cause.ENGINE_KV_CACHE_TOO_SMALL, "exit code 1", named={"asked": "8192", "length": "4096"}
)
DIES = Failure(Cause.ENGINE_EXITED, "exit code 0")


class Steps:
    """Launch, verify and correct of a fleet whose verifications end as the test says."""

    def __init__(self, ends: Iterable[Failure | None]) -> None:
        self.done: list[tuple[str, str, str]] = []
        self.wrong: dict[str, str] = {}
        self._ends = iter(ends)

    async def launch(self, plan: LaunchPlan) -> tuple[Workload, ...]:
        self._note("launch", plan)
        return tuple(map(planned_workload, plan.containers))

    async def verify(
        self, _spec: Any, _profile: Any, _plan: Any, started: Any, _earlier: Any
    ) -> tuple[Readiness, ...]:
        if failure := next(self._ends):
            raise failure
        return tuple(Readiness(workload=w.name, endpoint="", probes=()) for w in started)

    async def correct(self, part: LaunchPlan, _correction: Correction) -> None:
        self._note("correct", part)

    async def gate(
        self, _spec: Any, _profile: Any, plan: LaunchPlan, started: Any, _before: Any
    ) -> tuple[SmokeTestResult, ...]:
        self._note("gate", plan)
        return tuple(
            SmokeTestResult(
                workload=one.name, answers=(), wrong=self.wrong.get(str(one.replica), "")
            )
            for one in started
        )

    async def canary(self, _spec: Any, _profile: Any, _plan: Any, started: Any) -> None:
        self.done.append(("canary", str(len(started)), ""))

    def _note(self, what: str, part: LaunchPlan) -> None:
        for spec in part.containers:
            self.done.append((what, spec.labels[LABEL_REPLICA], spec.argv[-1]))


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Steps]:
    def make_steps(*ends: Failure | None) -> Steps:
        found = Steps(ends)
        for name in ("launch", "verify", "correct", "gate", "canary"):
            monkeypatch.setattr(flow, name, getattr(found, name))
        return found

    return make_steps


def in_two_turns() -> LaunchPlan:
    """Two replicas on one accelerator: the second starts when the first is ready."""
    flags = (
        Flag(tokens=("vllm", "serve"), origin=Origin.DERIVED, reason=""),
        Flag(tokens=(LENGTH, "8192"), origin=Origin.DERIVED, reason=""),
    )
    containers = tuple(
        a_container(
            name=f"moorage-tiny.v1-r{replica}-leader",
            command=flags,
            accelerator_type="cuda",
            devices=("GPU-0",),
            labels={**a_container().labels, LABEL_REPLICA: str(replica)},
        )
        for replica in (0, 1)
    )
    return a_plan(*containers)


def started(before: Release | None = None, back_to: str = "", **spec: Any) -> Release:
    """The release as it is known when it runs, or when it has failed."""
    plan = in_two_turns()
    release = a_release(spec=a_spec(**spec), plan=plan, rolled_back_to=back_to)
    draft = ReleaseDraft(release, Journal([]), None)
    with suppress(Failure):
        asyncio.run(start_replicas(draft, plan, a_profile(), before))
    return draft.release


def lengths(release: Release) -> list[str]:
    assert release.plan
    return [spec.argv[-1] for spec in release.plan.containers]


def test_a_release_without_trouble_starts_turn_by_turn(steps: Callable[..., Steps]) -> None:
    steps_done = steps(None, None)
    release = started()
    assert steps_done.done == [("launch", "0", "8192"), ("launch", "1", "8192")]
    assert (len(release.workloads), len(release.readiness)) == (2, 2)
    assert release.corrections == ()


def test_later_turns_start_corrected(steps: Callable[..., Steps]) -> None:
    steps_done = steps(REFUSES, None, None)
    release = started()
    assert steps_done.done == [
        ("launch", "0", "8192"),
        ("correct", "0", "8192"),
        ("launch", "0", "4096"),
        ("launch", "1", "4096"),
    ]
    assert lengths(release) == ["4096", "4096"]
    assert len(release.workloads) == 2


def test_what_runs_already_is_left_as_it_is(steps: Callable[..., Steps]) -> None:
    steps_done = steps(None, REFUSES, None)
    release = started()
    assert steps_done.done[1:] == [
        ("launch", "1", "8192"),
        ("correct", "1", "8192"),
        ("launch", "1", "4096"),
    ]
    assert lengths(release) == ["8192", "4096"]
    assert [w.name[-9:] for w in release.workloads] == ["r0-leader", "r1-leader"]


@pytest.mark.parametrize(
    ("ends", "spec", "corrected"),
    [
        ((REFUSES, REFUSES), {}, 1),
        ((REFUSES, DIES), {}, 1),
        ((REFUSES, None, REFUSES), {}, 1),
        ((DIES,), {}, 0),
        ((REFUSES,), {"readiness": {"second_try": False}}, 0),
        ((REFUSES,), {"engine": {"command": ["vllm", "serve"]}}, 0),
    ],
)
def test_there_is_one_second_try_at_most_and_it_is_known_even_when_it_fails(
    steps: Callable[..., Steps],
    ends: tuple[Failure | None, ...],
    spec: dict[str, Any],
    corrected: int,
) -> None:
    steps_done = steps(*ends)
    release = started(**spec)
    assert len(release.corrections) == corrected
    assert [what for what, *_ in steps_done.done].count("correct") == corrected
    assert [what for what, *_ in steps_done.done].count("launch") == len(ends)


ASKED = {"prompts": [{"prompt": "2+2="}]}


def way(steps_done: Steps) -> list[tuple[str, str]]:
    return [(what, replica) for what, replica, _ in steps_done.done]


def test_each_turn_passes_the_gate_before_the_next_one_starts(steps: Callable[..., Steps]) -> None:
    steps_done = steps(None, None)
    release = started(readiness=ASKED)
    assert way(steps_done) == [("launch", "0"), ("gate", "0"), ("launch", "1"), ("gate", "1")]
    assert len(release.gate) == 2


def test_what_does_not_pass_the_gate_ends_the_start_and_is_known(
    steps: Callable[..., Steps],
) -> None:
    steps_done = steps(None)
    steps_done.wrong["0"] = "asked '2+2=', answered '5'"
    release = started(readiness=ASKED)
    assert way(steps_done) == [("launch", "0"), ("gate", "0")]
    assert release.gate[0].wrong == steps_done.wrong["0"]


@pytest.mark.parametrize(
    ("share", "before", "back_to", "expected"),
    [
        pytest.param(0.5, True, "", ["launch", "canary", "launch"], id="half of two"),
        pytest.param(1, True, "", ["launch", "launch", "canary"], id="all of them"),
        pytest.param(0.5, False, "", ["launch", "launch"], id="there is none that spares it"),
        pytest.param(0.5, True, "tiny.v1", ["launch", "launch"], id="it has served before"),
    ],
)
def test_a_canary_is_watched_before_the_rest_starts(
    steps: Callable[..., Steps],
    share: float,
    before: bool,
    back_to: str,
    expected: list[str],
) -> None:
    steps_done = steps(None, None)
    canary = {"strategy": "canary", "canary_share": share}
    started(a_release() if before else None, back_to, replicas=2, replace=canary)
    assert [what for what, *_ in steps_done.done] == expected


async def deployed(monkeypatch: pytest.MonkeyPatch, *approvals: str, spec: ModelSpec) -> list[str]:
    """The steps of a deploy that another release has overtaken while it waited for the lock."""
    done, given = list[str](), iter(approvals)

    async def require_allowed(*_: object) -> Fleet:
        done.append("policy")
        return Fleet()

    async def require_approval(*_: object, **__: object) -> str:
        done.append("approval")
        return next(given)

    @asynccontextmanager
    async def sole_flow(*_: object, **__: object) -> AsyncIterator[None]:
        done.append("lock")
        yield

    async def roll_out(_: Any, source: ReleaseSource, *__: object) -> Release:
        again = f", exactly {source.target.id}" if source.target else ""
        again += f" as {source.facts['rolled_back_to']}" if source.facts["rolled_back_to"] else ""
        done.append(f"roll out: {source.facts['approval']}{again}")
        return a_release()

    for stub in (require_allowed, require_approval, sole_flow, roll_out):
        monkeypatch.setattr(flow, stub.__name__, stub)
    for name in ("check_early", "superseded_since"):
        monkeypatch.setattr(flow, name, AsyncMock(return_value=""))
    monkeypatch.setattr(flow, "serving", AsyncMock(return_value=(a_row(), True)))
    monkeypatch.setattr(ReleaseSource, "is_served_by", AsyncMock(return_value=False))
    monkeypatch.setattr(
        flow, "flow_context", lambda *_: nullcontext(SimpleNamespace(flow_run_id=""))
    )
    await inspect.unwrap(flow.deploy_model.fn)(spec)
    return done


async def test_what_needs_approval_by_now_is_not_deployed_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = await deployed(monkeypatch, "", "by ann", spec=CAREFUL)
    first, then = ["policy", "approval", "lock"], ["approval", "lock", "policy"]
    assert done == [*first, *then, "roll out: by ann"]


async def test_a_spec_without_the_requirement_is_not_deployed_over_one_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran(spec=CAREFUL)
    done = await deployed(monkeypatch, "", "by ann", spec=a_spec(context=512))
    assert done[-1] == "roll out: by ann"


async def test_the_policy_is_asked_again_after_an_approval(monkeypatch: pytest.MonkeyPatch) -> None:
    done = await deployed(monkeypatch, "by ann", spec=CAREFUL)
    assert done == ["policy", "approval", "lock", "policy", "roll out: by ann"]


async def test_a_model_without_approval_is_deployed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = await deployed(monkeypatch, "", spec=a_spec())
    assert done == ["policy", "approval", "lock", "roll out: "]


@pytest.mark.parametrize(("back_to", "expected"), [("", ""), ("tiny.v0", " as tiny.v0")])
async def test_a_repair_deploys_exactly_what_ran_and_a_rollback_stays_one(
    monkeypatch: pytest.MonkeyPatch, back_to: str, expected: str
) -> None:
    with granted_as_it_ran(a_release(spec=CAREFUL, rolled_back_to=back_to)):
        done = await deployed(monkeypatch, "by ann", spec=CAREFUL)
    assert done[-1] == f"roll out: by ann, exactly tiny.v1{expected}"
