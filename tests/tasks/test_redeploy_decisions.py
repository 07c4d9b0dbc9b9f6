"""Which redeployments go on at the same time, and which models they consider."""

from __future__ import annotations

from types import SimpleNamespace
from uuid import UUID

import pytest

from moorage.adapters.ledger.locks import LockHeld
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from moorage.operations.redeploy.intent import Question
from moorage.operations.redeploy.selection import Selection
from moorage.releases.states import ReleaseState
from moorage.spec import ModelSpec, OnDrift
from tasks import redeploy_decisions
from tasks.context import ledger
from tasks.redeploy_decisions import _later, ask_approval, find_intents, sole_watch
from tests.builders import REVISION, a_release, a_spec
from tests.tasks.test_compare import ran

pytestmark = pytest.mark.usefixtures("own_home")

FIRST, OTHER = UUID(int=1), UUID(int=2)


@pytest.mark.parametrize(
    ("second", "deployment", "goes_on"),
    [
        ("sha256:a", FIRST, False),
        ("sha256:b", FIRST, True),
        ("sha256:a", OTHER, True),
        ("sha256:a", None, True),
    ],
    ids=["the same", "other parameters", "another deployment", "no deployment"],
)
async def test_one_run_of_a_deployment_watches_with_the_same_parameters(
    monkeypatch: pytest.MonkeyPatch, second: str, deployment: UUID | None, goes_on: bool
) -> None:
    def begun_by(one: UUID | None) -> None:
        run = SimpleNamespace(id=UUID(int=9), deployment_id=one)
        monkeypatch.setattr(redeploy_decisions, "current_flow_run", lambda: run)

    begun_by(FIRST)
    async with sole_watch("sha256:a"):
        begun_by(deployment)
        if goes_on:
            async with sole_watch(second):
                pass
        else:
            with pytest.raises(LockHeld, match="held by flow run"):
                async with sole_watch(second):
                    pass
    begun_by(FIRST)
    async with sole_watch("sha256:a"):
        pass


S = ReleaseState


@pytest.mark.parametrize("states", [(S.STOPPING, S.ASLEEP), (S.STOPPING, S.ASLEEP, S.WAKING)])
@pytest.mark.parametrize("moved", [True, False])
@pytest.mark.parametrize("by_policy", [True, False])
async def test_a_model_that_sleeps_is_compared_and_its_engines_need_not_answer(
    monkeypatch: pytest.MonkeyPatch,
    states: tuple[ReleaseState, ...],
    moved: bool,
    by_policy: bool,
) -> None:
    async def resolve(_: ModelSpec) -> SimpleNamespace:
        return SimpleNamespace(revision="2" * 40 if moved else REVISION, pins=())

    monkeypatch.setattr(redeploy_decisions, "resolve_untracked", resolve)
    release = ran(*states, spec=a_spec(redeploy={"on_moved_branch": "redeploy"}))
    [found] = await find_intents(Selection(names=("tiny",), by_policy=by_policy), Fleet())
    assert found.failure is None
    assert (found.release, found.action) == (release, OnDrift.REDEPLOY if moved else OnDrift.NEVER)


def test_every_later_release_with_a_record_says_what_has_failed() -> None:
    own = ledger().releases
    serving = own.get(ran()).release
    assert serving
    tries = [own.begin(a_spec(), REVISION, "") for _ in range(3)]
    for one in tries[:2]:
        own.fail(one, "no-fit", a_release(one))
    assert [one.id for one in _later(serving)] == [tries[1], tries[0]]


ONE_SHOT = "run-llama-0a1b2c"


@pytest.mark.parametrize(
    ("names", "chosen"),
    [((), []), (("run-*",), []), ((ONE_SHOT,), [ONE_SHOT]), (("*", ONE_SHOT), [ONE_SHOT])],
)
async def test_a_model_of_moorage_run_is_left_out_unless_it_is_named(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], chosen: list[str]
) -> None:
    async def resolve(_: ModelSpec) -> SimpleNamespace:
        return SimpleNamespace(revision=REVISION, pins=())

    monkeypatch.setattr(redeploy_decisions, "resolve_untracked", resolve)
    ran(S.STOPPING, S.ASLEEP, spec=a_spec(name=ONE_SHOT))
    found = await find_intents(Selection(names=names), Fleet())
    assert [one.spec.name for one in found] == chosen


@pytest.mark.parametrize(
    ("cause", "branch", "action"),
    [
        (Cause.APPROVAL_REFUSED, "2", OnDrift.NOTIFY),
        (Cause.APPROVAL_TIMED_OUT, "2", OnDrift.NOTIFY),
        (Cause.APPROVAL_REFUSED, "3", OnDrift.REDEPLOY),
        (Cause.APPROVAL_IMPOSSIBLE, "2", OnDrift.REDEPLOY),
    ],
)
async def test_a_policy_does_not_ask_again_for_what_nobody_approved(
    monkeypatch: pytest.MonkeyPatch, cause: Cause, branch: str, action: OnDrift
) -> None:
    revisions = ["2" * 40, branch * 40]

    async def resolve(_: ModelSpec) -> SimpleNamespace:
        return SimpleNamespace(revision=revisions.pop(0), pins=())

    async def declined(_: Question) -> str:
        raise Failure(cause, "tiny")

    monkeypatch.setattr(redeploy_decisions, "resolve_untracked", resolve)
    monkeypatch.setattr(redeploy_decisions, "ask", declined)
    ran(spec=a_spec(redeploy={"on_moved_branch": "redeploy", "approval": "required"}))
    watched = Selection(names=("tiny",), by_policy=True)
    approval, (failed,) = await ask_approval(await find_intents(watched, Fleet()))
    assert (approval, failed.cause) == ("", cause)
    [again] = await find_intents(watched, Fleet())
    assert again.action == action
    assert again.why.startswith("nobody approved it; ") == (action == OnDrift.NOTIFY)
