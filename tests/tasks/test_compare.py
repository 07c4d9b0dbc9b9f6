"""A deploy that was decided on a while ago does not go over what has happened since."""

from __future__ import annotations

from typing import Any

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows import reconcile_fleet
from moorage.common.failures import OUT_OF_REACH, Cause, Failure
from moorage.inventory.fleet import Avoided, Fleet
from moorage.operations.reconcile.actions import Action, ActionKind, ActionOutcome
from moorage.readiness.protocol import Readiness
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState
from moorage.spec import ModelSpec, RuntimeName
from tasks import compare
from tasks.compare import decision_scope, needs_approval, superseded_since
from tasks.context import ledger
from tasks.policy import approved_release, given_approval
from tests.builders import REVISION, a_host, a_placement, a_plan, a_release, a_spec, a_workload
from tests.tasks.hosts_away import hosts_without

pytestmark = pytest.mark.usefixtures("own_home")

S = ReleaseState


def ran(*states: ReleaseState, **facts: Any) -> str:
    """A release that has served, and was then moved on; what served before is superseded."""
    own, before = ledger().releases, ledger().releases.running("tiny")
    new = own.begin(facts.get("spec", a_spec()), REVISION, "")
    own.move(new, S.SCHEDULED)
    own.move(new, S.STARTING)
    made: dict[str, Any] = {
        "replaced": before.id if before else "",
        "plan": a_plan(release=new),
        "readiness": (Readiness(workload="leader", endpoint="", probes=()),),
        **facts,
    }
    own.take_over(a_release(new, **made))
    if before:
        own.end(before.id, S.SUPERSEDED)
    for state in states:
        (own.end if state in (S.STOPPED, S.ERROR) else own.move)(new, state)
    return new


def failed() -> str:
    new = ledger().releases.begin(a_spec(), REVISION, "")
    ledger().releases.give_up(new, "no-fit")
    return new


@pytest.mark.parametrize("states", [(), (S.UNREACHABLE,), (S.STOPPING, S.ASLEEP), (S.ERROR,)])
async def test_what_still_holds_the_name_sleeps_or_served_until_it_died_is_deployed_anew(
    states: tuple[ReleaseState, ...],
) -> None:
    with decision_scope(ran(*states)):
        assert await superseded_since("tiny") == ""
        failed()  # by somebody else: that has changed nothing
        assert await superseded_since("tiny") == ""


async def test_what_was_retired_since_stays_retired() -> None:
    with decision_scope(ran(S.STOPPING, S.STOPPED)):
        assert await superseded_since("tiny") == "tiny.v1 is stopped by now"


@pytest.mark.parametrize("states", [(), (S.ERROR,), (S.STOPPING, S.STOPPED)])
async def test_what_was_deployed_since_goes_before(states: tuple[ReleaseState, ...]) -> None:
    with decision_scope(ran()):
        ran(*states)
        assert (await superseded_since("tiny")).startswith("tiny.v2 is there by now")


async def test_a_deploy_that_somebody_asks_for_goes_over_whatever_is_there() -> None:
    ran(S.STOPPING, S.STOPPED)
    assert await superseded_since("tiny") == ""


async def test_reconciling_does_not_bring_back_what_was_retired_while_it_waited_for_the_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, outcomes = ran(), list[str]()

    async def deploy() -> State[Any]:
        ledger().releases.move(old, S.STOPPING)
        ledger().releases.end(old, S.STOPPED)
        outcomes.append(await superseded_since("tiny"))
        return Completed()

    monkeypatch.setattr(reconcile_fleet, "deployment", lambda *_: deploy)
    about = {"model": "tiny", "release": old, "state": S.RUNNING, "reason": "it died"}
    await reconcile_fleet._replace(Action(kind=ActionKind.REPLACE, **about), Fleet())
    assert outcomes == [f"{old} is stopped by now"]


@pytest.mark.parametrize("needed", [True, False])
async def test_reconciling_asks_nobody_and_brings_nothing_that_has_moved(
    monkeypatch: pytest.MonkeyPatch, needed: bool
) -> None:
    spec = a_spec(redeploy={"approval": "required"} if needed else {})
    old, seen = ran(spec=spec), list[Any]()

    async def deploy() -> State[Any]:
        seen.extend((given_approval("tiny"), approved_release()))
        return Completed()

    monkeypatch.setattr(reconcile_fleet, "deployment", lambda *_: deploy)
    about = {"model": "tiny", "release": old, "state": S.RUNNING, "reason": "it died"}
    await reconcile_fleet._replace(Action(kind=ActionKind.REPLACE, **about), Fleet())
    release = ledger().releases.get(old).release
    assert seen == [f"{old} ran before" if needed else "", release]


@pytest.mark.parametrize("on_moved_branch", ["redeploy", "notify"])
async def test_what_cannot_run_as_it_ran_is_deployed_afresh_where_its_spec_follows_its_source(
    monkeypatch: pytest.MonkeyPatch, on_moved_branch: str
) -> None:
    old, tried = ran(spec=a_spec(redeploy={"on_moved_branch": on_moved_branch})), list[bool]()

    async def deploy() -> State[Any]:
        tried.append(approved_release() is not None)
        return Failed(message="the bucket has changed") if tried[-1] else Completed()

    monkeypatch.setattr(reconcile_fleet, "deployment", lambda *_: deploy)
    about = {"model": "tiny", "release": old, "state": S.RUNNING, "reason": "it died"}
    done = await reconcile_fleet._replace(Action(kind=ActionKind.REPLACE, **about), Fleet())
    assert (tried, done.done) == (
        ([True, False], True) if on_moved_branch == "redeploy" else ([True], False)
    )


@pytest.mark.parametrize("elsewhere", [True, False])
async def test_what_a_host_has_lost_is_deployed_as_it_ran_and_only_moves_if_it_may(
    monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    spec = a_spec(restart={"elsewhere": elsewhere})
    old = ran(spec=spec, placement=a_placement(spec, a_host("gpu-1")))
    seen = list[Any]()

    def deployment(_spec: Any, fleet: Fleet, _applied: str) -> Any:
        async def deploy() -> State[Any]:
            seen.extend((fleet.avoided_hosts, approved_release(), given_approval("tiny")))
            return Completed()

        return deploy

    monkeypatch.setattr(reconcile_fleet, "deployment", deployment)
    about = {"model": "tiny", "release": old, "state": S.RUNNING, "reason": "it died"}
    restart = ActionOutcome(action=Action(kind=ActionKind.RESTART, **about), done=False)
    fleet = Fleet.model_validate({"hosts": [{"name": "gpu-1"}, {"name": "gpu-2"}]})
    deploy = reconcile_fleet._as_deploy(restart)
    await reconcile_fleet._replace(deploy, fleet, in_place=True)
    release = ledger().releases.get(old).release
    assert seen == [frozenset() if elsewhere else {"gpu-2"}, release, ""]


CAREFUL = a_spec(redeploy={"approval": "required"})


@pytest.mark.parametrize(
    ("spec", "served", "states", "needed"),
    [
        (a_spec(), a_spec(), (), False),
        (CAREFUL, a_spec(), (), True),
        (a_spec(context=512), CAREFUL, (), True),
        (a_spec(context=512), CAREFUL, (S.STOPPING, S.ASLEEP), True),
        (a_spec(context=512), CAREFUL, (S.STOPPING, S.STOPPED), False),
    ],
)
async def test_who_leaves_the_approval_out_of_a_spec_needs_that_of_what_it_replaces(
    spec: ModelSpec, served: ModelSpec, states: tuple[ReleaseState, ...], needed: bool
) -> None:
    release = ran(*states, spec=served)
    assert await needs_approval(spec) == needed
    with decision_scope(release):  # who decided on it has asked
        assert await needs_approval(spec) == (spec == CAREFUL)


@pytest.fixture(params=[Cause.RUNTIME_UNAVAILABLE])
def away(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Hosts that do not answer; on all others every engine is ready."""
    found, cause = set[str](), request.param
    monkeypatch.setattr(compare, "runtime_for", hosts_without(found, ready=True, cause=cause))
    return found


AVOIDING = Fleet(avoid=(Avoided(host="gpu-1"),))


def on(*hosts: str, runtime: RuntimeName = RuntimeName.DOCKER) -> ReleaseRow:
    """A release that serves with a replica on each host."""
    release = ran()
    for number, host in enumerate(hosts):
        facts = {"release": release, "replica": number, "host": host, "runtime": runtime}
        ledger().workloads.put(release, a_workload(f"{release}-r{number}", **facts))
    return ledger().releases.get(release)


@pytest.mark.parametrize(
    ("runtime", "advised"), [(RuntimeName.DOCKER, True), (RuntimeName.RAY, False)]
)
async def test_a_host_that_is_away_does_not_leave_people_without_a_way_out(
    away: set[str], runtime: RuntimeName, advised: bool
) -> None:
    on("gpu-1", runtime=runtime)
    away.add("gpu-1")
    with pytest.raises(Failure, match="gpu-1 is away") as raised:
        await compare.serving(a_spec(), Fleet())
    assert ("`avoid`" in raised.value.suggestion) == advised


@pytest.mark.parametrize("away", sorted(OUT_OF_REACH), indirect=True)
async def test_of_several_hosts_only_those_that_are_away_have_to_be_avoided(
    away: set[str],
) -> None:
    old = on("gpu-1", "gpu-2")
    assert await compare.serving(a_spec(), AVOIDING) == (old, True)
    away.add("gpu-1")
    assert await compare.serving(a_spec(), AVOIDING) == (old, False)
    assert ledger().releases.get(old.id).state == S.UNREACHABLE
    away.add("gpu-2")
    with pytest.raises(Failure, match="gpu-2 is away"):
        await compare.serving(a_spec(), AVOIDING)
