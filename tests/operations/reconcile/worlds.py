"""Small worlds: one ledger, some hosts, and what becomes of them when actions are done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from moorage.engines.labels import LABEL_RELEASE, LABEL_REPLICA
from moorage.engines.launch import ContainerSpec
from moorage.engines.workload import Workload
from moorage.operations.reconcile.actions import Action, ActionKind, not_before
from moorage.operations.reconcile.cluster_state import (
    ClusterState,
    Observation,
    RepairRecord,
    planned_workloads,
)
from moorage.operations.reconcile.observed_workload import ObservedWorkload, Place
from moorage.releases.release_row import SUPERSEDED, ReleaseRow
from moorage.releases.states import ReleaseState
from moorage.spec import RestartSpec, RuntimeName
from tests.builders import (
    NOON,
    a_container,
    a_host,
    a_placement,
    a_plan,
    a_release,
    a_spec,
    a_workload,
)

S = ReleaseState
HOST = Place(host="gpu-1", address="local", runtime=RuntimeName.PROCESS)
LONG_AGO = NOON - timedelta(days=2)
HELD = {"host": "gpu-1", "identity": "1@1"}


def workload(release: str = "tiny.v1", **changes: Any) -> Any:
    return a_workload(f"moorage-{release}-r0-leader", **{**HELD, "release": release, **changes})


def a_standing(
    state: ReleaseState = S.RUNNING,
    release: str = "tiny.v1",
    *,
    since: datetime = NOON,
    restart: RestartSpec = RestartSpec(),  # noqa: B008
    workloads: Sequence[Workload] | None = None,
    planned: Sequence[Workload] | None = None,
    on_gpu: bool = False,
    successor: str = "",
) -> ReleaseRow:
    """A release with one workload and a record with the plan of it."""
    own = (workload(release),)
    spec = a_spec(name=release.split(".")[0], restart=restart)
    containers = [_container(one) for one in (own if planned is None else planned)]
    plan = a_plan(*containers, release=release)
    record = a_release(
        release,
        spec=spec,
        plan=plan if containers else None,
        placement=a_placement(spec, a_host()) if on_gpu else None,
    )
    return ReleaseRow(
        id=release,
        model=spec.name,
        number=1,
        state=state,
        spec_digest=spec.digest,
        revision=record.revision,
        flow_run_id="",
        created_at=NOON,
        updated_at=since,
        cause=f"{SUPERSEDED} {successor}, stopped first" if successor else "",
        release=record,
        workloads=own if workloads is None else tuple(workloads),
    )


def _container(planned: Workload) -> ContainerSpec:
    labels = {**a_container().labels, LABEL_RELEASE: planned.release}
    labels[LABEL_REPLICA] = str(planned.replica)
    place = planned.model_dump(include={"name", "host", "address", "runtime"})
    return a_container(**place, labels=labels)


def found(release: str = "tiny.v1", **changes: Any) -> ObservedWorkload:
    values: dict[str, Any] = {
        "name": f"moorage-{release}-r0-leader",
        "identity": "1@1",
        "release": release,
        "model": release.split(".")[0],
        "running": True,
        "state": "process 1 runs",
        "since": NOON,
    }
    return ObservedWorkload.model_validate({**values, **changes})


def dead(release: str = "tiny.v1", **changes: Any) -> ObservedWorkload:
    return found(release, running=False, state="the process has ended", **changes)


def observed(*there: ObservedWorkload, place: Place = HOST) -> Observation:
    return Observation(place=place, workloads=there)


def unreachable(seconds: float = 60, place: Place = HOST) -> Observation:
    since = NOON - timedelta(seconds=seconds)
    return Observation(place=place, unreachable_since=since, detail="no route")


def a_world(*releases: ReleaseRow, **changes: Any) -> ClusterState:
    values: dict[str, Any] = {
        "now": NOON,
        "releases": releases,
        "observations": (observed(found()),),
        "hosts": frozenset({"gpu-1", "gpu-2"}),
    }
    return ClusterState(**{**values, **changes})


def after(world: ClusterState, actions: tuple[Action, ...]) -> ClusterState:
    """The world once everything is done, a moment later."""
    for action in actions:
        world = EFFECTS.get(action.kind, lambda world, _action: world)(world, action)
    return world


def _gone(world: ClusterState, action: Action) -> ClusterState:
    """A release has ended; nothing of it runs where anybody can place."""
    kept = tuple(one for one in world.releases if one.id != action.release)
    observations = tuple(
        place.model_copy(
            update={
                "workloads": tuple(one for one in place.workloads if one.release != action.release)
            }
        )
        for place in world.observations
    )
    return replace(world, releases=kept, observations=observations)


def _without(place: Observation, is_gone: Callable[[ObservedWorkload], bool]) -> Observation:
    left = tuple(one for one in place.workloads if not is_gone(one))
    return place.model_copy(update={"workloads": left})


def _moved(state: ReleaseState) -> Any:
    def move(world: ClusterState, action: Action) -> ClusterState:
        return _changed(world, action, state=state)

    return move


def _restarted(world: ClusterState, action: Action) -> ClusterState:
    world = _changed(world, action, state=S.RUNNING)
    own = next(one for one in world.releases if one.id == action.release)
    names = {one.name for one in (*own.workloads, *planned_workloads(own))}
    observations = []
    for place in world.observations:
        others = tuple(one for one in place.workloads if one.name not in names)
        here = [one for one in planned_workloads(own) if one.host == place.place.host]
        back = tuple(found(own.id, name=one.name, identity=one.identity) for one in here)
        observations.append(place.model_copy(update={"workloads": (*others, *back)}))
    record = world.record(action.release)
    attempts = record.attempts + 1
    kept = RepairRecord(
        release=own.id,
        attempts=attempts,
        elsewhere=record.elsewhere,
        not_before=not_before(world.now, attempts),
        started_at=world.now,
    )
    world = _changed(world, action, workloads=planned_workloads(own))
    return _kept(replace(world, observations=tuple(observations)), kept)


def _answered(world: ClusterState, action: Action) -> ClusterState:
    record = world.record(action.release)
    answered = {"started_at": None, "probed_at": world.now, "missed": 0}
    return _kept(world, record.model_copy(update=answered))


def _forgotten(world: ClusterState, action: Action) -> ClusterState:
    record = world.record(action.release)
    return _kept(world, record.model_copy(update={"attempts": 0, "elsewhere": 0}))


def _removed(world: ClusterState, action: Action) -> ClusterState:
    observations = tuple(
        place.model_copy(
            update={"workloads": tuple(one for one in place.workloads if one != action.stray)}
        )
        for place in world.observations
    )
    return replace(world, observations=observations)


def _adopted(world: ClusterState, action: Action) -> ClusterState:
    names = {one.name for one in action.adopted}
    own = next(one for one in world.releases if one.id == action.release)
    others = tuple(one for one in own.workloads if one.name not in names)
    return _changed(world, action, workloads=(*others, *action.adopted))


def _changed(world: ClusterState, action: Action, **changes: Any) -> ClusterState:
    releases = tuple(
        replace(one, **changes) if one.id == action.release else one for one in world.releases
    )
    return replace(world, releases=releases)


def _kept(world: ClusterState, record: RepairRecord) -> ClusterState:
    return replace(world, records={**world.records, record.release: record})


EFFECTS: dict[ActionKind, Any] = {
    ActionKind.UNDO: _gone,
    ActionKind.FINISH: _gone,
    ActionKind.GIVE_UP: _gone,
    ActionKind.REPLACE: _gone,
    ActionKind.BRING_BACK: _restarted,
    ActionKind.RESTART: _restarted,
    ActionKind.MARK_UNREACHABLE: _moved(S.UNREACHABLE),
    ActionKind.MARK_REACHABLE: _moved(S.RUNNING),
    ActionKind.ADOPT: _adopted,
    ActionKind.PROBE: _answered,
    ActionKind.FORGET: _forgotten,
    ActionKind.REMOVE: _removed,
}
"""The effect of each action on a world, when it succeeds."""
