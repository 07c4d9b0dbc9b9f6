"""Which release stops for which, and what one leaves to the other."""

from __future__ import annotations

from moorage.common.failures import Cause, Failure
from moorage.engines.launch import LaunchPlan
from moorage.engines.stopping import Ending, ending
from moorage.inventory.claims import Claim
from moorage.releases.release import ReleaseRow, ReleaseState
from moorage.spec import StoppingSpec

SUPERSEDED = "superseded by"
"""How the cause of a release begins that stops for its successor (`tasks/replace.py`)."""


ENDING = "its engines were told to end"
"""How the cause goes on while they are stopped: one that still runs may be about to end."""


def successor_of(row: ReleaseRow) -> str:
    """The release for which one stops; empty where it is stopped for none."""
    if row.state != ReleaseState.STOPPING or not row.cause.startswith(SUPERSEDED):
        return ""
    return row.cause.removeprefix(SUPERSEDED).split()[0].strip(",;")


def replaceable(old: ReleaseRow | None) -> str:
    """The release that may be stopped first: only one that could be started again."""
    return old.id if old and old.release and old.release.plan else ""


def claims_of(row: ReleaseRow | None) -> tuple[str, tuple[Claim, ...]]:
    """A release that may have had to make room, and what it claimed; nothing for none."""
    if row is None or row.release is None or row.release.placement is None:
        return "", ()
    return row.id, row.release.placement.claims


def plan_of(row: ReleaseRow) -> LaunchPlan:
    """What a release starts.

    Raises:
        Failure: `UNKNOWN_RELEASE` when its record does not tell.
    """
    if row.release is None or row.release.plan is None:
        raise Failure(Cause.UNKNOWN_RELEASE, f"{row.id} has no plan to start again from")
    return row.release.plan


def ending_of(row: ReleaseRow) -> Ending:
    """How a release is ended, as far as its record tells."""
    if row.release is None:
        return ending(StoppingSpec(), None)
    return ending(row.release.spec.stopping, row.release.plan)
