"""What is decided about a world, case by case."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from moorage.inventory.fleet import Avoided
from moorage.operations.reconcile.cluster_state import (
    ClusterState,
    Observation,
    Patience,
    RepairRecord,
)
from moorage.operations.reconcile.decisions import decide
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState
from moorage.spec import RestartSpec
from tests.builders import NOON, a_host, a_placement, a_spec
from tests.operations.reconcile.worlds import (
    HOST,
    a_standing,
    a_world,
    dead,
    found,
    observed,
    unreachable,
    workload,
)

S = ReleaseState
NEVER = RestartSpec.model_validate({"policy": "never"})
STAYS = RestartSpec(elsewhere=False)
PATIENT = RestartSpec(unreachable_seconds=172_800)


def ago(seconds: float) -> Any:
    return NOON - timedelta(seconds=seconds)


def kept(**values: Any) -> dict[str, Any]:
    return {"records": {"tiny.v1": RepairRecord(release="tiny.v1", **values)}}


def on_accelerator(index: int) -> Avoided:
    return Avoided(host="gpu-1", accelerators=(index,))


AVOIDED = Avoided(host="gpu-1", reason="service")
GONE = {"observations": (observed(),)}
DIED = {"observations": (observed(dead()),)}
AWAY = {"observations": (unreachable(),)}
LONG_AWAY = {"observations": (unreachable(700),)}

AT_WORK = {"tiny": "flow run x"}

CASES: dict[str, tuple[ClusterState, list[str]]] = {
    "what runs and answered lately": (a_world(a_standing()), []),
    "what was not probed lately": (a_world(a_standing(since=ago(60))), ["probe"]),
    "what was probed lately": (
        a_world(a_standing(since=ago(900)), **kept(probed_at=ago(30))),
        [],
    ),
    "what was started again and has not answered": (
        a_world(a_standing(), **kept(attempts=1, started_at=ago(5))),
        ["probe"],
    ),
    "what was started again and never answered": (
        a_world(a_standing(), **kept(attempts=1, started_at=ago(1100))),
        ["restart"],
    ),
    "what has been well for long": (
        a_world(a_standing(), **kept(attempts=2, well_since=ago(300), probed_at=ago(5))),
        ["forget"],
    ),
    "what has been well for a moment": (
        a_world(a_standing(), **kept(attempts=2, well_since=ago(299), probed_at=ago(5))),
        [],
    ),
    "what could not be moved, and is back for long": (
        a_world(a_standing(since=ago(300)), **kept(elsewhere=2, probed_at=ago(5))),
        ["forget"],
    ),
    "what could not be moved, and is back since a moment": (
        a_world(a_standing(since=ago(299)), **kept(elsewhere=2, probed_at=ago(5))),
        [],
    ),
    "what could not be moved, and is seen again now": (
        a_world(a_standing(S.UNREACHABLE, since=ago(900)), **kept(elsewhere=2, probed_at=ago(5))),
        ["mark seen"],
    ),
    "what missed one question": (
        a_world(a_standing(), **kept(missed=1, probed_at=ago(60))),
        ["probe"],
    ),
    "what missed two questions": (
        a_world(a_standing(), **kept(missed=2, probed_at=ago(5))),
        ["restart"],
    ),
    "what died": (a_world(a_standing(), **DIED), ["restart"]),
    "what is gone": (a_world(a_standing(), **GONE), ["restart"]),
    "what died and waits": (
        a_world(a_standing(), **DIED, **kept(attempts=1, not_before=NOON + timedelta(seconds=1))),
        ["wait"],
    ),
    "what died and has waited": (
        a_world(a_standing(), **DIED, **kept(attempts=1, not_before=NOON)),
        ["restart"],
    ),
    "what died and waits until a time of a clock that was ahead": (
        a_world(a_standing(), **DIED, **kept(attempts=1, not_before=NOON + timedelta(hours=1))),
        ["restart"],
    ),
    "what was probed by a clock that was ahead": (
        a_world(a_standing(), **kept(probed_at=NOON + timedelta(hours=1))),
        ["probe"],
    ),
    "what died too often in one place": (
        a_world(a_standing(), **DIED, **kept(attempts=3)),
        ["replace"],
    ),
    "what died too often, with accelerators to leave first": (
        a_world(a_standing(on_gpu=True), **DIED, **kept(attempts=3), hosts=frozenset({"gpu-1"})),
        ["replace"],
    ),
    "what died too often, where there is no other host": (
        a_world(a_standing(), **DIED, **kept(attempts=3), hosts=frozenset({"gpu-1"})),
        ["restart"],
    ),
    "what died too often, and could not be placed elsewhere": (
        a_world(a_standing(), **DIED, **kept(attempts=3, elsewhere=1)),
        ["restart"],
    ),
    "what died too often, and is to stay where it is": (
        a_world(a_standing(restart=STAYS), **DIED, **kept(attempts=9)),
        ["restart"],
    ),
    "what died where the fleet avoids the host": (
        a_world(a_standing(), **DIED, avoid=(AVOIDED,)),
        ["replace"],
    ),
    "what is silent where the fleet avoids the host": (
        a_world(a_standing(), **kept(missed=2), avoid=(AVOIDED,)),
        ["replace"],
    ),
    "what runs where the fleet avoids the host": (
        a_world(a_standing(), **kept(probed_at=NOON), avoid=(AVOIDED,)),
        [],
    ),
    "what died where the fleet avoids another host": (
        a_world(a_standing(), **DIED, avoid=(Avoided(host="gpu-2"),)),
        ["restart"],
    ),
    "what died on an accelerator that the fleet avoids": (
        a_world(a_standing(on_gpu=True), **DIED, avoid=(on_accelerator(0),)),
        ["replace"],
    ),
    "what died next to an accelerator that the fleet avoids": (
        a_world(a_standing(on_gpu=True), **DIED, avoid=(on_accelerator(1),)),
        ["restart"],
    ),
    "what died where the fleet avoids the host, and could not be placed elsewhere": (
        a_world(a_standing(), **DIED, **kept(elsewhere=1), avoid=(AVOIDED,)),
        ["restart"],
    ),
    "what died where the fleet avoids the host, after that restart": (
        a_world(a_standing(), **DIED, **kept(attempts=1, elsewhere=1), avoid=(AVOIDED,)),
        ["replace"],
    ),
    "what died where the fleet avoids the host, and waits": (
        a_world(
            a_standing(),
            **DIED,
            **kept(attempts=1, not_before=NOON + timedelta(seconds=5)),
            avoid=(AVOIDED,),
        ),
        ["wait"],
    ),
    "what died where the fleet avoids the only host": (
        a_world(a_standing(), **DIED, avoid=(AVOIDED,), hosts=frozenset()),
        ["restart"],
    ),
    "what died where the fleet avoids the host, and is to stay where it is": (
        a_world(a_standing(restart=STAYS), **DIED, avoid=(AVOIDED,)),
        ["restart"],
    ),
    "what died and is not to be started again": (
        a_world(a_standing(restart=NEVER), **DIED),
        ["give up"],
    ),
    "what died and has a record that nobody can read": (
        a_world(a_standing(planned=()), **DIED),
        ["wait"],
    ),
    "what is unreachable": (a_world(a_standing(), **AWAY), ["mark unreachable"]),
    "what stays unreachable": (a_world(a_standing(S.UNREACHABLE), **AWAY), ["wait"]),
    "what is unreachable for long": (
        a_world(a_standing(S.UNREACHABLE), **LONG_AWAY),
        ["replace"],
    ),
    "what is unreachable for long, and could not be moved a few times": (
        a_world(
            a_standing(S.UNREACHABLE),
            **LONG_AWAY,
            **kept(elsewhere=4, not_before=NOON + timedelta(seconds=80)),
        ),
        ["wait"],
    ),
    "what is unreachable for long, and is to stay": (
        a_world(a_standing(S.UNREACHABLE, restart=STAYS), **LONG_AWAY),
        ["wait"],
    ),
    "what is unreachable for long, without another host": (
        a_world(a_standing(S.UNREACHABLE), **LONG_AWAY, hosts=frozenset({"gpu-1"})),
        ["wait"],
    ),
    "what is unreachable for good": (
        a_world(a_standing(S.UNREACHABLE), observations=(unreachable(90_000),)),
        ["give up"],
    ),
    "what is unreachable for a day, and is to be moved after two": (
        a_world(a_standing(S.UNREACHABLE, restart=PATIENT), observations=(unreachable(90_000),)),
        ["wait"],
    ),
    "what is unreachable for two days, and is to be moved then": (
        a_world(a_standing(S.UNREACHABLE, restart=PATIENT), observations=(unreachable(176_400),)),
        ["replace"],
    ),
    "what is unreachable for longer than its move may take": (
        a_world(a_standing(S.UNREACHABLE, restart=PATIENT), observations=(unreachable(180_000),)),
        ["give up"],
    ),
    "what is unreachable for a day, and is to stay": (
        a_world(
            a_standing(S.UNREACHABLE, restart=PATIENT.model_copy(update={"elsewhere": False})),
            observations=(unreachable(90_000),),
        ),
        ["give up"],
    ),
    "what is unreachable and to be given up at once": (
        a_world(
            a_standing(S.UNREACHABLE, restart=PATIENT),
            **AWAY,
            patience=Patience(lost_seconds=0),
        ),
        ["give up"],
    ),
    "what is seen again": (a_world(a_standing(S.UNREACHABLE)), ["mark seen"]),
    "what is seen again, and was started while another host was away": (
        a_world(a_standing(S.UNREACHABLE), **kept(attempts=3, started_at=ago(9000))),
        ["mark seen", "probe"],
    ),
    "what is seen again, dead": (
        a_world(a_standing(S.UNREACHABLE), **DIED),
        ["mark seen", "restart"],
    ),
    "what runs and is not written down": (a_world(a_standing(workloads=())), ["adopt"]),
    "what runs under another identity": (
        a_world(a_standing(), observations=(observed(found(identity="2@2")),)),
        ["adopt"],
    ),
    "what a dead flow began": (a_world(a_standing(S.STARTING)), ["undo"]),
    "what a dead flow began on an unreachable host": (
        a_world(a_standing(S.STARTING), **AWAY),
        ["wait"],
    ),
    "what a dead flow began before anything was started": (
        a_world(a_standing(S.PENDING, workloads=()), observations=(observed(),)),
        ["undo"],
    ),
    "what failed and holds something": (a_world(a_standing(S.ERROR)), ["undo"]),
    "what was to be retired": (a_world(a_standing(S.STOPPING)), ["finish"]),
    "what was superseded": (
        a_world(a_standing(S.STOPPING, successor="tiny.v2"), took_over=frozenset({"tiny.v2"})),
        ["finish"],
    ),
    "what made room for one that never came": (
        a_world(a_standing(S.STOPPING, successor="tiny.v2"), **GONE),
        ["bring back"],
    ),
    "what made room and cannot be brought back": (
        a_world(a_standing(S.STOPPING, successor="tiny.v2"), **GONE, **kept(attempts=3)),
        ["finish"],
    ),
    "what made room for one that never came, before another one did": (
        a_world(
            a_standing(S.STOPPING, successor="tiny.v2"),
            a_standing(release="tiny.v3"),
            observations=(observed(found("tiny.v3")),),
        ),
        ["finish"],
    ),
    "what made room for one that never came, before another one did and fell asleep": (
        a_world(a_standing(S.STOPPING, successor="tiny.v2"), sleepers={"tiny": "tiny.v3"}, **GONE),
        ["finish"],
    ),
    "what made room for one that never came, while another one wakes": (
        a_world(
            a_standing(S.STOPPING, successor="tiny.v2"),
            a_standing(S.WAKING, "tiny.v3"),
            **GONE,
        ),
        ["finish", "undo"],
    ),
    "what sleeps": (a_world(a_standing(S.ASLEEP)), []),
    "what died in its sleep": (a_world(a_standing(S.ASLEEP), **DIED), ["give up"]),
    "what sleeps on an unreachable host": (a_world(a_standing(S.ASLEEP), **LONG_AWAY), []),
    "what sleeps on a host that is unreachable for good": (
        a_world(a_standing(S.ASLEEP), observations=(unreachable(90_000),)),
        ["give up"],
    ),
    "what stops on an unreachable host": (a_world(a_standing(S.STOPPING), **AWAY), ["wait"]),
    "what a living flow works on": (a_world(a_standing(S.STARTING), busy=AT_WORK), []),
    "what a living flow works on, dead": (
        a_world(a_standing(), **DIED, busy=AT_WORK),
        [],
    ),
    "what nobody owns, since a moment": (a_world(), ["wait"]),
    "what nobody owns, since long": (
        a_world(observations=(observed(found(since=ago(600))),)),
        ["remove"],
    ),
    "what nobody owns, of a model that is worked on": (
        a_world(observations=(observed(found(since=ago(900))),), busy=AT_WORK),
        [],
    ),
    "a helper that is left over": (
        a_world(observations=(observed(dead("", helper="probe", since=ago(900))),)),
        ["remove"],
    ),
    "a helper that still brings a model": (
        a_world(observations=(observed(found("", helper="stage", since=ago(9000))),)),
        [],
    ),
    "a helper that still lends a model to another host": (
        a_world(observations=(observed(found("", helper="lend", since=ago(9000))),)),
        [],
    ),
    "a helper that still reads all of a store": (
        a_world(observations=(observed(found("", helper="keep", since=ago(9000))),)),
        [],
    ),
    "a helper to which a flow may still send a directory": (
        a_world(
            observations=(observed(dead("", helper="stage", fresh=True, since=ago(9000))),),
            busy=AT_WORK,
        ),
        ["wait"],
    ),
    "a helper to which nobody can still send": (
        a_world(
            observations=(observed(dead("", helper="stage", fresh=True, since=ago(90_000))),),
            busy=AT_WORK,
        ),
        ["remove"],
    ),
    "a helper that was made for a directory while nobody works": (
        a_world(observations=(observed(dead("", helper="stage", fresh=True, since=ago(9000))),)),
        ["remove"],
    ),
    "a helper that has brought a model for nobody": (
        a_world(observations=(observed(dead("", helper="stage", since=ago(900))),)),
        ["remove"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_done_about(name: str) -> None:
    world, expected = CASES[name]
    actions = decide(world)
    assert [one.kind for one in actions] == expected
    assert all(one.reason for one in actions)


def test_accelerators_are_left_before_their_host_is() -> None:
    first = a_world(a_standing(on_gpu=True), **DIED, **kept(attempts=3))
    [action] = decide(first)
    assert [(one.host, one.accelerators) for one in action.avoid] == [("gpu-1", (0,))]
    later = a_world(a_standing(on_gpu=True), **DIED, **kept(attempts=6, elsewhere=1))
    [action] = decide(later)
    assert [(one.host, one.accelerators) for one in action.avoid] == [("gpu-1", ())]
    assert "died there 7 times" in action.avoid[0].reason


def test_the_accelerators_of_a_replica_that_runs_are_not_left() -> None:
    spec = a_spec(name="tiny", replicas=2, placement={"accelerators": 1})
    own = [workload().model_copy(update={"name": f"r{one}", "replica": one}) for one in (0, 1)]
    release = a_standing(workloads=own, planned=own)
    assert release.release
    facts = {"placement": a_placement(spec, a_host(gpus=3))}
    release = replace(release, release=release.release.model_copy(update=facts))
    there = observed(found(name="r0"), dead(name="r1"))
    [action] = decide(a_world(release, observations=(there,), **kept(attempts=3)))
    assert [one.accelerators for one in action.avoid] == [(1,)]


def test_one_slow_host_concerns_only_what_runs_there() -> None:
    far = unreachable().place.model_copy(update={"host": "gpu-2"})
    elsewhere = workload("far.v1", host="gpu-2")
    world = a_world(
        a_standing(),
        a_standing(release="far.v1", workloads=(elsewhere,), planned=(elsewhere,)),
        observations=(observed(found()), unreachable(place=far)),
    )
    assert [(one.kind, one.release) for one in decide(world)] == [("mark unreachable", "far.v1")]


FAR = HOST.model_copy(update={"host": "gpu-2"})


def a_pair(state: ReleaseState, replicas: tuple[int, int] = (0, 1), **changes: Any) -> ReleaseRow:
    """A release with a workload on this host and one on another."""
    own = [
        workload().model_copy(update={"name": name, "host": host, "replica": replica})
        for name, host, replica in zip(("near", "far"), ("gpu-1", "gpu-2"), replicas, strict=True)
    ]
    return a_standing(state, workloads=own, planned=own, **changes)


@pytest.mark.parametrize(
    ("seconds", "replicas", "changes", "expected"),
    [
        (60, (0, 1), {}, [("wait", ()), ("restart", ("near",))]),
        (700, (0, 1), {}, [("replace", ())]),
        (700, (0, 1), {"hosts": frozenset({"gpu-2"})}, [("wait", ()), ("restart", ("near",))]),
        (60, (0, 1), kept(attempts=3), [("wait", ()), ("restart", ("near",))]),
        (60, (0, 1), kept(attempts=1, not_before=NOON + timedelta(seconds=5)), [("wait", ())]),
        (60, (0, 0), {}, [("wait", ())]),
    ],
    ids=["at first", "replaced", "no other host", "died often", "not yet", "one replica on both"],
)
def test_a_dead_replica_is_started_again_while_the_host_of_another_is_away(
    seconds: float, replicas: tuple[int, int], changes: dict[str, Any], expected: list[Any]
) -> None:
    release = a_pair(S.UNREACHABLE, replicas)
    observations = (observed(dead(name="near")), unreachable(seconds, place=FAR))
    world = a_world(release, **{"observations": observations, **changes})
    assert [(one.kind, one.dead) for one in decide(world)] == expected


@pytest.mark.parametrize(
    ("devices", "began", "asked", "expected"),
    [
        ("00", 30, 31, "probe"),
        ("00", 80, 31, "probe"),
        ("00", 3600, 31, "restart"),
        ("00", 30, 9000, "restart"),
        ("00", 30, None, "restart"),
        ("01", 30, 31, "restart"),
    ],
    ids=["loads", "a clock is behind", "served before", "too late", "answered", "another chip"],
)
def test_a_dead_replica_waits_for_one_that_loads_on_its_accelerator(
    devices: str, began: float, asked: float | None, expected: str
) -> None:
    own = [workload().model_copy(update={"name": f"r{one}", "replica": one}) for one in (0, 1)]
    release = a_standing(workloads=own, planned=own)
    assert release.release
    assert release.plan
    chips = (
        one.model_copy(update={"devices": (device,)})
        for one, device in zip(release.plan.containers, devices, strict=True)
    )
    plan = release.plan.model_copy(update={"containers": tuple(chips)})
    release = replace(release, release=release.release.model_copy(update={"plan": plan}))
    there = observed(found(name="r0", since=ago(began)), dead(name="r1"))
    started = kept(attempts=1, started_at=None if asked is None else ago(asked))
    [action] = decide(a_world(release, observations=(there,), **started))
    assert (action.kind, action.dead) == (expected, ("r1",))


NEAR_RUNS, NEAR_DIED = observed(found(name="near")), observed(dead(name="near"))
FAR_DIED, FAR_LOST = observed(dead(name="far"), place=FAR), unreachable(90_000, place=FAR)


@pytest.mark.parametrize(
    ("near", "far", "restart", "expected"),
    [
        (NEAR_RUNS, FAR_LOST, RestartSpec(), ["wait"]),
        (NEAR_RUNS, FAR_LOST, STAYS, ["wait"]),
        (NEAR_RUNS, FAR_LOST, NEVER, ["wait"]),
        (NEAR_DIED, FAR_LOST, RestartSpec(), ["wait", "restart"]),
        (NEAR_DIED, FAR_LOST, NEVER, ["give up"]),
        (NEAR_RUNS, FAR_DIED, NEVER, ["wait"]),
        (NEAR_DIED, FAR_DIED, NEVER, ["give up"]),
    ],
)
def test_a_release_is_given_up_only_when_none_of_its_replicas_is_left(
    near: Observation, far: Observation, restart: RestartSpec, expected: list[str]
) -> None:
    state = S.UNREACHABLE if far.unreachable_since else S.RUNNING
    release = a_pair(state, restart=restart)
    world = a_world(release, observations=(near, far))
    assert [one.kind for one in decide(world)] == expected


@pytest.mark.parametrize("near", [NEAR_RUNS, NEAR_DIED])
def test_a_repair_spares_a_release_of_which_a_replica_runs(near: Observation) -> None:
    observations = (near, unreachable(700, place=FAR))
    [action] = decide(a_world(a_pair(S.UNREACHABLE), observations=observations))
    assert (action.kind, action.spares) == ("replace", near is NEAR_RUNS)


def test_patience_is_a_setting() -> None:
    world = a_world(patience=Patience(orphan_seconds=0))
    assert [one.kind for one in decide(world)] == ["remove"]


def test_what_is_brought_back_undoes_its_successor_itself() -> None:
    old = a_standing(S.STOPPING, successor="tiny.v2")
    new = a_standing(S.STARTING, "tiny.v2")
    assert [one.kind for one in decide(a_world(old, new, **GONE))] == ["bring back"]
