"""The activity of releases for metrics: transitions in the order of the log, and outcomes."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from sqlalchemy import Row, func, select

from moorage.adapters.ledger.database import UNDECODABLE, LedgerPart, reading
from moorage.adapters.ledger.tables import RELEASES, TRANSITION_LOG, VERDICTS
from moorage.adapters.ledger.transitions import LOGGED, transition_of
from moorage.operations.metrics.activity import Outcome
from moorage.releases.states import SERVING, ReleaseState, Transition

AT_ONCE = 500
"""Limit of rows of one query."""

_RECORD = RELEASES.c.record


class ActivityLog(LedgerPart):
    """Reads the transitions of all releases, and the parts of records that metrics count."""

    def transitions_after(self, last: int) -> list[tuple[int, Transition]]:
        """The transitions after number `last` of the log, with their numbers; at most `AT_ONCE`."""
        ordered = LOGGED.where(TRANSITION_LOG.c.id > last).order_by(TRANSITION_LOG.c.id)
        with reading(self._engine) as connection:
            rows = connection.execute(ordered.limit(AT_ONCE))
            return [(row.id, transition_of(row, row.model)) for row in rows]

    def outcomes(self, releases: Iterable[str]) -> dict[str, Outcome]:
        """The outcomes of those releases that have a record; pass at most `AT_ONCE` ids.

        The database extracts these parts of a record, so the rest need not be decoded.
        """
        query = (
            select(
                RELEASES.c.id,
                RELEASES.c.model,
                _RECORD["steps"].label("steps"),
                _RECORD["downtime_seconds"].as_float().label("downtime"),
                _RECORD[("failure", "cause")].as_string().label("cause"),
                VERDICTS.c.refusals,
            )
            .outerjoin(VERDICTS, VERDICTS.c.release == RELEASES.c.id)
            .where(RELEASES.c.id.in_(list(releases)), _RECORD.is_not(None))
        )
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
    # A record of another version may have another shape. Such a record is not counted.
    with suppress(*UNDECODABLE):
        return Outcome(
            model=row.model,
            phases=tuple((one["name"], one["seconds"]) for one in row.steps or ()),
            downtime_seconds=row.downtime or 0.0,
            cause=row.cause or "",
            refusals=row.refusals or {},
        )
    return Outcome(model=row.model)
