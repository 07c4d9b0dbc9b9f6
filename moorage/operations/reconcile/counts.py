"""Counts of reconciling's actions, which outlive the reports of its runs."""

from collections.abc import Sequence
from datetime import datetime

from moorage.common.values import Value
from moorage.operations.reconcile.actions import ActionOutcome

RUN = "run"
"""Kind under which completed runs are counted, next to the actions."""


class ReconcileCount(Value):
    """How often an action was carried out.

    Attributes:
        kind: An `ActionKind`, or `RUN`.
        not_done: How often it was decided but not carried out.
        latest: Time of the last count, UTC.
    """

    kind: str
    done: int = 0
    not_done: int = 0
    latest: datetime


def counts_of(outcomes: Sequence[ActionOutcome], now: datetime) -> tuple[ReconcileCount, ...]:
    """The counts that a run adds on its completion."""
    kinds = dict.fromkeys(str(outcome.action.kind) for outcome in outcomes)
    actions = (
        ReconcileCount(
            kind=kind,
            done=sum(one.action.kind == kind and one.done for one in outcomes),
            not_done=sum(one.action.kind == kind and not one.done for one in outcomes),
            latest=now,
        )
        for kind in kinds
    )
    return (ReconcileCount(kind=RUN, done=1, latest=now), *actions)
