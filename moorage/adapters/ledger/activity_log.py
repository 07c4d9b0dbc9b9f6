"""What happened to releases, read in the order in which it was written, each part once."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from sqlalchemy import Row, func, select

from moorage.adapters.ledger.database import UNDECODABLE, LedgerPart, reading
from moorage.adapters.ledger.packed_verdicts import count_refusals
from moorage.adapters.ledger.tables import RELEASES, TRANSITION_LOG
from moorage.adapters.ledger.transitions import transition_of
from moorage.operations.metrics.activity import Outcome
from moorage.releases.states import SERVING, ReleaseState, Transition

AT_ONCE = 500
"""Rows that are read at once."""

_RECORD = RELEASES.c.record


class ActivityLog(LedgerPart):
    """The transitions of all releases, and those parts of their records that are counted."""

    def transitions_after(self, last: int) -> list[tuple[int, Transition]]:
        """The next transitions after one, by their numbers in the log; at most `AT_ONCE`."""
        query = select(TRANSITION_LOG, RELEASES.c.model).join(
            RELEASES, RELEASES.c.id == TRANSITION_LOG.c.release
        )
        ordered = query.where(TRANSITION_LOG.c.id > last).order_by(TRANSITION_LOG.c.id)
        with reading(self._engine) as connection:
            rows = connection.execute(ordered.limit(AT_ONCE))
            return [(row.id, transition_of(row, row.model)) for row in rows]

    def outcomes(self, releases: Iterable[str]) -> dict[str, Outcome]:
        """The outcomes of at most `AT_ONCE` releases, of those whose record is written.

        The database takes these parts out of the records, so that the rest need not be decoded.
        """
        query = select(
            RELEASES.c.id,
            RELEASES.c.model,
            _RECORD["steps"].label("steps"),
            _RECORD["downtime_seconds"].as_float().label("downtime"),
            _RECORD[("failure", "cause")].as_string().label("cause"),
            _RECORD[("placement", "verdicts")].label("verdicts"),
        ).where(RELEASES.c.id.in_(list(releases)), _RECORD.is_not(None))
        with reading(self._engine) as connection:
            return {row.id: _outcome(row) for row in connection.execute(query)}

    def states(self) -> dict[ReleaseState, int]:
        """How many releases are in each state."""
        query = select(RELEASES.c.state, func.count()).group_by(RELEASES.c.state)
        with reading(self._engine) as connection:
            found = {ReleaseState(state): count for state, count in connection.execute(query)}
        return {state: found.get(state, 0) for state in ReleaseState}

    def serving(self) -> dict[str, ReleaseState]:
        """The releases that serve, with their states."""
        query = select(RELEASES.c.id, RELEASES.c.state).where(RELEASES.c.state.in_(SERVING))
        with reading(self._engine) as connection:
            return {row.id: ReleaseState(row.state) for row in connection.execute(query)}


def _outcome(row: Row[Any]) -> Outcome:
    # Another version may have written a record in another shape: then it is not counted.
    with suppress(*UNDECODABLE):
        return Outcome(
            model=row.model,
            phases=tuple((one["name"], one["seconds"]) for one in row.steps or ()),
            downtime_seconds=row.downtime or 0.0,
            cause=row.cause or "",
            refusals=count_refusals(row.verdicts),
        )
    return Outcome(model=row.model)
