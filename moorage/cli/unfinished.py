"""Unfinished releases whose flow was killed, for the commands that show releases."""

from collections.abc import Sequence

from moorage.adapters.ledger import Ledger
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import UNFINISHED

ABANDONED = "its flow has ended: `moorage reconcile` cleans up"


def abandoned(ledger: Ledger, rows: Sequence[ReleaseRow]) -> set[str]:
    """Unfinished releases that no flow will finish, since none holds their model's lock."""
    unfinished = [row for row in rows if row.state in UNFINISHED]
    at_work = ledger.locks.holders([row.model for row in unfinished]) if unfinished else {}
    left = {row.id for row in unfinished if row.model not in at_work}
    # A flow may have finished its release since the rows were read.
    now = ledger.overviews.not_finished() if left else []
    return left & {one.row.id for one in now if one.row.state in UNFINISHED}


def causes(ledger: Ledger, rows: Sequence[ReleaseRow]) -> dict[str, str]:
    """The cause of each release's state, by id, and whether its flow was killed."""
    left = abandoned(ledger, rows)
    return {
        row.id: "; ".join(filter(None, (row.cause, ABANDONED if row.id in left else "")))
        for row in rows
    }
