"""What holds in every world."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.inventory.fleet import Avoided
from moorage.operations.reconcile.actions import ActionKind, not_before
from moorage.operations.reconcile.cluster_state import (
    ClusterState,
    RepairRecord,
    planned_workloads,
)
from moorage.operations.reconcile.decisions import decide
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import FINAL, ReleaseState
from moorage.spec import RestartSpec
from tests.builders import NOON
from tests.operations.reconcile.worlds import (
    a_standing,
    a_world,
    after,
    dead,
    found,
    observed,
    unreachable,
)

NAMES = ("tiny", "other", "third")
STATES = sorted(set(ReleaseState) - FINAL | {ReleaseState.ERROR})
SECONDS = st.integers(-1200, 1200)


def moments(seconds: st.SearchStrategy[int] = SECONDS) -> st.SearchStrategy[Any]:
    return st.none() | seconds.map(lambda number: NOON - timedelta(seconds=number))


@st.composite
def standings(draw: st.DrawFn, model: str) -> ReleaseRow:
    state = draw(st.sampled_from(STATES))
    stops = state == ReleaseState.STOPPING and draw(st.booleans())
    restart = RestartSpec.model_validate(
        {
            "policy": draw(st.sampled_from(["always", "never"])),
            "attempts": draw(st.integers(1, 3)),
            "elsewhere": draw(st.booleans()),
        }
    )
    changes: dict[str, Any] = {"workloads": ()} if draw(st.booleans()) else {}
    return a_standing(
        state,
        f"{model}.v1",
        since=NOON - timedelta(seconds=draw(st.integers(0, 1200))),
        restart=restart,
        successor=f"{model}.v2" if stops else "",
        **changes,
    )


@st.composite
def records(draw: st.DrawFn, model: str) -> RepairRecord:
    past = st.integers(0, 1200)
    return RepairRecord(
        release=f"{model}.v1",
        attempts=draw(st.integers(0, 7)),
        elsewhere=draw(st.integers(0, 2)),
        not_before=draw(moments()),
        started_at=draw(moments(past)),
        well_since=draw(moments(past)),
        probed_at=draw(moments(past)),
        missed=draw(st.integers(0, 3)),
    )


@st.composite
def worlds(draw: st.DrawFn) -> ClusterState:
    releases = [draw(standings(model)) for model in NAMES if draw(st.booleans())]
    there = []
    for number, model in enumerate(NAMES):
        make = draw(st.sampled_from([None, found, dead]))
        since = NOON - timedelta(seconds=draw(st.integers(0, 1200)))
        if make:
            identity = draw(st.sampled_from(["1@1", f"{number + 2}@2"]))
            there.append(make(f"{model}.v1", since=since, identity=f"{identity}"))
    out_of_sight = draw(st.booleans())
    place = unreachable(draw(st.integers(1, 100_000))) if out_of_sight else observed(*there)
    return a_world(
        *releases,
        observations=(place,),
        records={f"{model}.v1": draw(records(model)) for model in NAMES if draw(st.booleans())},
        hosts=draw(st.sampled_from([frozenset({"gpu-1"}), frozenset({"gpu-1", "gpu-2"})])),
        avoid=draw(st.sampled_from([(), (Avoided(host="gpu-1"),)])),
        took_over=frozenset(f"{model}.v2" for model in NAMES if draw(st.booleans())),
        busy={one.model: "flow run x" for one in releases if draw(st.integers(0, 2)) == 2},
    )


@given(worlds())
@settings(max_examples=400, deadline=None)
def test_what_a_living_flow_works_on_is_not_touched(world: ClusterState) -> None:
    assert not [one for one in decide(world) if one.model in world.busy]


@given(worlds())
@settings(max_examples=400, deadline=None)
def test_nothing_is_started_before_its_time(world: ClusterState) -> None:
    starts = {ActionKind.RESTART, ActionKind.REPLACE, ActionKind.BRING_BACK}
    for action in decide(world):
        if action.kind in starts:
            record = world.record(action.release)
            # A later time is that of a clock which was ahead.
            waits = not_before(world.now, record.attempts + record.elsewhere + 1)
            assert not record.not_before or not world.now < record.not_before <= waits


@given(worlds())
@settings(max_examples=400, deadline=None)
def test_nothing_that_is_owned_or_young_is_removed(world: ClusterState) -> None:
    owned = {
        one.name for own in world.releases for one in (*own.workloads, *planned_workloads(own))
    }
    for action in decide(world):
        if action.kind == ActionKind.REMOVE:
            assert action.stray
            assert action.stray.name not in owned
            assert world.now - action.stray.since >= timedelta(
                seconds=world.patience.orphan_seconds
            )


@given(worlds())
@settings(max_examples=400, deadline=None)
def test_once_all_is_done_there_is_nothing_left_but_patience(world: ClusterState) -> None:
    for _ in range(2):  # what was restarted is probed by the next run
        world = after(world, decide(world))
    assert {one.kind for one in decide(world)} <= {ActionKind.WAIT, ActionKind.PROBE}
