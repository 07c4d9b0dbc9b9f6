"""Small worlds: one ledger, some hosts, and what becomes of them when actions are done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from moorage.operations.reconcile.actions import Action, Deed
from moorage.operations.reconcile.cluster_state import Found, Look, Place, Record, Standing, World
from moorage.operations.reconcile.release_status import not_before
from moorage.releases.states import ReleaseState
from moorage.spec import RuntimeName
from tests.builders import NOON, a_workload

S = ReleaseState
HOST = Place(host="gpu-1", address="local", runtime=RuntimeName.PROCESS)
LONG_AGO = NOON - timedelta(days=2)
HELD = {"host": "gpu-1", "identity": "1@1"}


def workload(release: str = "tiny.v1", **changes: Any) -> Any:
    return a_workload(f"moorage-{release}-r0-leader", **{**HELD, "release": release, **changes})


def a_standing(
    state: ReleaseState = S.RUNNING, release: str = "tiny.v1", **changes: Any
) -> Standing:
    """A release with one workload; only what serves or stops has a plan in its record."""
    own = (workload(release),)
    planned = own if state in (S.RUNNING, S.UNREACHABLE, S.STOPPING) else ()
    values: dict[str, Any] = {
        "id": release,
        "model": release.split(".")[0],
        "state": state,
        "since": NOON,
        "workloads": own,
        "planned": planned,
    }
    return Standing.model_validate({**values, **changes})


def found(release: str = "tiny.v1", **changes: Any) -> Found:
    values: dict[str, Any] = {
        "name": f"moorage-{release}-r0-leader",
        "identity": "1@1",
        "release": release,
        "model": release.split(".")[0],
        "running": True,
        "state": "process 1 runs",
        "since": NOON,
    }
    return Found.model_validate({**values, **changes})


def dead(release: str = "tiny.v1", **changes: Any) -> Found:
    return found(release, running=False, state="the process has ended", **changes)


def seen(*there: Found, place: Place = HOST) -> Look:
    return Look(place=place, found=there)


def unseen(seconds: float = 60, place: Place = HOST) -> Look:
    since = NOON - timedelta(seconds=seconds)
    return Look(place=place, unseen_since=since, detail="no route")


def a_world(*releases: Standing, **changes: Any) -> World:
    values: dict[str, Any] = {
        "now": NOON,
        "releases": releases,
        "looks": (seen(found()),),
        "hosts": frozenset({"gpu-1", "gpu-2"}),
        "busy": {one.model: one.busy for one in releases if one.busy},
    }
    return World.model_validate({**values, **changes})


def after(world: World, actions: tuple[Action, ...]) -> World:
    """The world once everything is done, a moment later."""
    for action in actions:
        world = EFFECTS.get(action.deed, lambda world, _action: world)(world, action)
    return world


def _gone(world: World, action: Action) -> World:
    """A release has ended; nothing of it runs where anybody can look."""
    kept = tuple(one for one in world.releases if one.id != action.release)
    looks = tuple(
        look.model_copy(
            update={"found": tuple(one for one in look.found if one.release != action.release)}
        )
        for look in world.looks
    )
    return world.model_copy(update={"releases": kept, "looks": looks})


def _moved(state: ReleaseState) -> Any:
    def move(world: World, action: Action) -> World:
        return _changed(world, action, state=state)

    return move


def _restarted(world: World, action: Action) -> World:
    world = _changed(world, action, state=S.RUNNING)
    own = next(one for one in world.releases if one.id == action.release)
    names = {one.name for one in (*own.workloads, *own.planned)}
    looks = []
    for look in world.looks:
        others = tuple(one for one in look.found if one.name not in names)
        here = [one for one in own.planned if one.host == look.place.host]
        back = tuple(found(own.id, name=one.name, identity=one.identity) for one in here)
        looks.append(look.model_copy(update={"found": (*others, *back)}))
    record = world.record(action.release)
    attempts = record.attempts + 1
    kept = Record(
        release=own.id,
        attempts=attempts,
        elsewhere=record.elsewhere,
        not_before=not_before(world.now, attempts),
        started_at=world.now,
    )
    world = _changed(world, action, workloads=own.planned)
    return _kept(world.model_copy(update={"looks": tuple(looks)}), kept)


def _answered(world: World, action: Action) -> World:
    record = world.record(action.release)
    answered = {"started_at": None, "probed_at": world.now, "missed": 0}
    return _kept(world, record.model_copy(update=answered))


def _forgotten(world: World, action: Action) -> World:
    record = world.record(action.release)
    return _kept(world, record.model_copy(update={"attempts": 0, "elsewhere": 0}))


def _removed(world: World, action: Action) -> World:
    looks = tuple(
        look.model_copy(update={"found": tuple(one for one in look.found if one != action.found)})
        for look in world.looks
    )
    return world.model_copy(update={"looks": looks})


def _adopted(world: World, action: Action) -> World:
    names = {one.name for one in action.adopted}
    own = next(one for one in world.releases if one.id == action.release)
    others = tuple(one for one in own.workloads if one.name not in names)
    return _changed(world, action, workloads=(*others, *action.adopted))


def _changed(world: World, action: Action, **changes: Any) -> World:
    releases = tuple(
        one.model_copy(update=changes) if one.id == action.release else one
        for one in world.releases
    )
    return world.model_copy(update={"releases": releases})


def _kept(world: World, record: Record) -> World:
    others = tuple(one for one in world.records if one.release != record.release)
    return world.model_copy(update={"records": (*others, record)})


EFFECTS: dict[Deed, Any] = {
    Deed.UNDO: _gone,
    Deed.FINISH: _gone,
    Deed.GIVE_UP: _gone,
    Deed.REPLACE: _gone,
    Deed.BRING_BACK: _restarted,
    Deed.RESTART: _restarted,
    Deed.MARK_UNREACHABLE: _moved(S.UNREACHABLE),
    Deed.MARK_SEEN: _moved(S.RUNNING),
    Deed.ADOPT: _adopted,
    Deed.PROBE: _answered,
    Deed.FORGET: _forgotten,
    Deed.REMOVE: _removed,
}
"""What each deed makes of a world, when it succeeds."""
