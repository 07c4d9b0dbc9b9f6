"""What reconciling did, as rows for people and programs."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.operations.reconcile.actions import QUIET, Action, ActionOutcome
from moorage.operations.reconcile.cluster_state import ClusterState

COLUMNS = ("what", "about", "why", "outcome")


def rows(outcomes: Iterable[ActionOutcome]) -> tuple[tuple[str, str, str, str], ...]:
    """One row an action."""
    return tuple(
        (one.action.kind, one.action.about, one.action.reason, _became(one)) for one in outcomes
    )


def table(outcomes: Iterable[ActionOutcome]) -> list[dict[str, str]]:
    """Rows for an artifact."""
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows(outcomes)]


def planned(actions: Iterable[Action]) -> tuple[ActionOutcome, ...]:
    """What would be done."""
    return tuple(
        ActionOutcome(action=one, done=False, summary="not done: dry run") for one in actions
    )


def changing(outcomes: Iterable[ActionOutcome]) -> tuple[ActionOutcome, ...]:
    """What changed something, or should have."""
    return tuple(one for one in outcomes if one.action.kind not in QUIET)


def summary(cluster: ClusterState, outcomes: Iterable[ActionOutcome]) -> str:
    """One line about a look and what came of it."""
    acted = changing(outcomes)
    done = sum(one.done for one in acted)
    hosts = len({look.place.host for look in cluster.observations})
    seen = f"{_counted(hosts, 'host')} and {_counted(len(cluster.releases), 'release')} looked at"
    if not acted:
        return f"{seen}: nothing to do"
    names = ", ".join(f"{one.action.kind} {one.action.about}" for one in acted if one.done)
    left = len(acted) - done
    return f"{seen}: {names or 'nothing done'}{f'; {left} left' if left else ''}"


def hosts_table(cluster: ClusterState) -> list[dict[str, str]]:
    """Each place that was looked at."""
    return [
        {
            "host": look.place.host,
            "runtime": look.place.runtime,
            "seen": "yes"
            if look.unseen_since is None
            else f"no, since {look.unseen_since:%Y-%m-%d %H:%M:%S}",
            "workloads": str(sum(not one.helper for one in look.found)),
            "detail": look.detail,
        }
        for look in cluster.observations
    ]


def _became(one: ActionOutcome) -> str:
    return one.summary or ("done" if one.done else "not done")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
