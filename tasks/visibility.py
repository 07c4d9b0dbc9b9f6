"""Whether what serves can be seen: while its host is away a release is `unreachable`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moorage.common.failures import Cause, Failure
from moorage.releases.release import ReleaseRow, ReleaseState
from tasks.context import ledger


@contextmanager
def in_sight(row: ReleaseRow) -> Iterator[None]:
    """Look at what a serving release runs, and write down whether it could be seen.

    That it was seen says nothing about its health: a dead engine on a host that answers is seen.

    Raises:
        Failure: Of the runtime or the host that could not be asked.
    """
    try:
        yield
    except Failure as failure:
        if row.state == ReleaseState.RUNNING:
            mark(row, ReleaseState.UNREACHABLE, str(failure))
        raise
    if row.state == ReleaseState.UNREACHABLE:
        mark(row, ReleaseState.RUNNING, "seen again")


def mark(row: ReleaseRow, to: ReleaseState, cause: str) -> None:
    """Write down that a release is out of sight, or seen again; nothing when it was moved since."""
    try:
        ledger().releases.move(row.id, to, cause)
    except Failure as failure:
        if failure.cause is not Cause.LOST_LOCK:  # else somebody moved it who knows better
            raise
