"""The actions that bring ledger and hosts into agreement."""

from __future__ import annotations

from datetime import timedelta

from moorage.operations.reconcile.actions import Action, ActionKind
from moorage.operations.reconcile.cluster_state import ClusterState, Observation, ObservedWorkload
from moorage.operations.reconcile.release_rules import about
from moorage.operations.reconcile.release_status import ReleaseStatus

ONGOING = frozenset({"stage", "lend", "keep"})
"""Helpers for these take as long as a model is large, and end by themselves when their flow is
gone: at their deadline, when nobody asks any more, or once all is read."""

FED = "stage"
FED_SECONDS = 86_400.0
"""How long a helper for that may be made and not started while any flow works: a directory of
another machine is sent to it first. Who wants the same model sees sooner that nobody sends."""


def about_strays(world: ClusterState) -> tuple[Action, ...]:
    """Actions for workloads that no release of the ledger owns, once for each name."""
    owned = {
        workload.name
        for release in world.releases
        for workload in (*release.workloads, *release.planned)
    }
    actions: dict[str, Action] = {}
    for look in world.looks:
        for found in look.found:
            if found.name not in owned and (action := _about(world, look, found)):
                actions.setdefault(found.identity, action)
    return tuple(actions.values())


def _about(world: ClusterState, look: Observation, found: ObservedWorkload) -> Action | None:
    if found.model in world.busy or (found.helper in ONGOING and found.running):
        return None
    what = f"a helper ({found.helper})" if found.helper else f"of {found.release}"
    told = f"{what}: {found.state}; nobody owns it"
    until = found.since + timedelta(seconds=_patience(world, found))
    waits = until > world.now
    return Action(
        deed=ActionKind.WAIT if waits else ActionKind.REMOVE,
        model=found.model,
        reason=f"{told}; removed from {until:%H:%M:%S} on" if waits else told,
        host=look.place.host,
        place=look.place,
        found=found,
    )


def _patience(world: ClusterState, found: ObservedWorkload) -> float:
    orphan = world.patience.orphan_seconds
    may_be_fed = found.fresh and found.helper == FED and world.busy
    return max(FED_SECONDS, orphan) if may_be_fed else orphan


def decide(world: ClusterState) -> tuple[Action, ...]:
    """The actions that bring ledger and hosts into agreement: by release, then strays.

    After all of them are done, a new decision asks only for waiting.
    """
    releases = [action for own in world.releases for action in about(ReleaseStatus(world, own))]
    back = {action.release for action in releases if action.deed == ActionKind.BRING_BACK}
    # Whoever is brought back undoes first what it had made room for.
    undone = {own.successor for own in world.releases if own.id in back}
    kept = (one for one in releases if one.deed != ActionKind.UNDO or one.release not in undone)
    return (*kept, *about_strays(world))
