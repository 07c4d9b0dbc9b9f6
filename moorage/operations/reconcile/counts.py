"""How often reconciling did what: all that stays of a run when its report is gone."""

from collections.abc import Sequence
from datetime import datetime

from moorage.common.values import Value
from moorage.operations.reconcile.actions import ActionOutcome

RUN = "run"
"""Counted with the actions: a run that came to its end."""


class ReconcileCount(Value):
    """How often an action was taken.

    Attributes:
        kind: An `ActionKind`, or `RUN`.
        not_done: How often it was decided, and not carried out.
        latest: When it was counted last, UTC.
    """

    kind: str
    done: int = 0
    not_done: int = 0
    latest: datetime


def counts_of(outcomes: Sequence[ActionOutcome], now: datetime) -> tuple[ReconcileCount, ...]:
    """What a run adds that came to its end now."""
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
