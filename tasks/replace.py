"""What goes before a model is deployed anew elsewhere, and that only one reconciles."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from moorage.inventory.fleet import Avoided, Fleet
from moorage.operations.reconcile.actions import Action
from moorage.operations.reconcile.backoff import not_before
from moorage.releases.release import Release
from tasks.context import ledger
from tasks.ledger_lock import held

LOCK = "reconcile:fleet"
"""No model can have this name."""


@asynccontextmanager
async def alone(note: str) -> AsyncIterator[None]:
    """Be the only one that reconciles.

    Args:
        note: Who it is, for others.

    Raises:
        LockHeld: When somebody else does.
    """
    async with held(ledger().locks.holding(LOCK, wait_seconds=0, note=note)):
        yield


def tried_elsewhere(action: Action) -> Release | None:
    """Count that a release is to be placed elsewhere, before it is.

    Returns:
        The record whose spec is deployed anew; None when the release is not what it was any more.
    """
    row = ledger().releases.get(action.release)
    if row.state != action.state or row.release is None:
        return None
    own, now = ledger().repairs, datetime.now(UTC)
    record = own.of(row.id)
    counted = {
        "elsewhere": record.elsewhere + 1,
        "not_before": not_before(now, record.attempts + 1),
        "failure": action.reason,
    }
    own.keep(record.model_copy(update=counted))
    return row.release


def narrowed(fleet: Fleet, avoid: Sequence[Avoided]) -> Fleet:
    """A fleet that avoids more."""
    return fleet.model_copy(update={"avoid": (*fleet.avoid, *avoid)})
