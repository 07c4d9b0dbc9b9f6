"""Counts of reconciling's actions, which outlive the reports of its runs."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

from moorage.common.values import Value
from moorage.operations.reconcile.actions import ActionOutcome

RUN = "run"
"""Kind under which completed runs are counted, next to the actions."""


def run_kind(site: str) -> str:
    """The kind under which completed runs of a site are counted; of no site, all runs.

    A digest, since the name of a site may be longer than a kind in the ledger.
    """
    return f"{RUN} {hashlib.sha256(site.encode()).hexdigest()[:12]}" if site else RUN


class ReconcileCount(Value):
    """How often an action was carried out.

    Attributes:
        kind: An `ActionKind`, `RUN`, or that of the runs of a site.
        not_done: How often it was decided but not carried out.
        latest: Time of the last count, UTC.
    """

    kind: str
    done: int = 0
    not_done: int = 0
    latest: datetime


def counts_of(
    outcomes: Sequence[ActionOutcome], now: datetime, site: str = ""
) -> tuple[ReconcileCount, ...]:
    """The counts that a run adds on its completion, at a site or anywhere."""
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
    runs = (
        ReconcileCount(kind=kind, done=1, latest=now)
        for kind in dict.fromkeys((RUN, run_kind(site)))
    )
    return (*runs, *actions)
