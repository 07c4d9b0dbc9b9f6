"""Releases as lists of models show them: the database extracts the shown parts of records."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, func, or_, select, tuple_, union

from moorage.adapters.ledger.database import UNDECODABLE, LedgerPart, reading
from moorage.adapters.ledger.decoding import NOT_UNDONE, release_of, workloads_of
from moorage.adapters.ledger.tables import RELEASES, TRANSITION_LOG
from moorage.engines.workload import Workload
from moorage.releases.overview import HistoryEntry, ReleaseOverview, place_of_seat
from moorage.releases.requester import Requester
from moorage.releases.states import DEPLOYED, UNFINISHED

_OWN = RELEASES.c
_LAST = (
    select(TRANSITION_LOG.c.at)
    .where(TRANSITION_LOG.c.release == _OWN.id)
    .order_by(TRANSITION_LOG.c.sequence.desc())
    .limit(1)
)
_BEGUN_BY = (
    select(TRANSITION_LOG.c.requested_by)
    .where(TRANSITION_LOG.c.release == _OWN.id, TRANSITION_LOG.c.flow_run_id == _OWN.flow_run_id)
    .order_by(TRANSITION_LOG.c.sequence)
    .limit(1)
)
_ROW = tuple(column for column in _OWN if column.name not in ("spec", "record", "canary"))
_SHOWN = (
    *_ROW,
    _LAST.scalar_subquery().label("since"),
    _OWN.spec["keep_alive"].as_string().label("keep_alive"),
    _OWN.record[("plan", "engine")].as_string().label("engine"),
    _OWN.record[("placement", "seats")].label("seats"),
    _OWN.record["corrections"].label("corrections"),
    _OWN.record["facts"].label("facts"),
)


_IN_HISTORY = (
    *_ROW,
    _OWN.record["rolled_back_to"].as_string().label("rolled_back_to"),
    _OWN.record["requester"].label("requester"),
    _BEGUN_BY.scalar_subquery().label("requested_by"),
    _OWN.record[("acceptance", "figures", "tpot_p50")].as_float().label("tpot"),
)


class Overviews(LedgerPart):
    """Reads releases without decoding their whole records."""

    def current(self) -> list[ReleaseOverview]:
        """The deployed releases, and the newest release of each model; by model and number."""
        newest = select(_OWN.model, func.max(_OWN.number)).group_by(_OWN.model)
        chosen = union(
            select(_OWN.id).where(_OWN.state.in_(DEPLOYED)),
            select(_OWN.id).where(tuple_(_OWN.model, _OWN.number).in_(newest)),
        )
        return self._rows(_OWN.id.in_(chosen))

    def history(self, model: str, limit: int | None = None) -> list[HistoryEntry]:
        """The newest releases of a model, newest first; all of them without a limit."""
        own = select(*_IN_HISTORY).where(_OWN.model == model).order_by(_OWN.number.desc())
        with reading(self._engine) as connection:
            rows = connection.execute(own.limit(limit)).all()
            workloads = workloads_of(connection, [row.id for row in rows])
            return [_entry(row, workloads[row.id]) for row in rows]

    def not_finished(self) -> list[ReleaseOverview]:
        """Releases in states that only a flow may leave behind, and failed ones with leftovers."""
        return self._rows(or_(NOT_UNDONE, _OWN.state.in_(UNFINISHED)))

    def _rows(self, where: ColumnElement[bool]) -> list[ReleaseOverview]:
        query = select(*_SHOWN).where(where).order_by(_OWN.model, _OWN.number)
        with reading(self._engine) as connection:
            rows = connection.execute(query).all()
            own = workloads_of(connection, [row.id for row in rows])
            return [_overview(row, own[row.id]) for row in rows]


def _overview(row: Row[Any], workloads: Sequence[Workload]) -> ReleaseOverview:
    since: datetime | None = row.since
    found = ReleaseOverview(
        row=release_of(row, workloads, None),
        since=since or row.created_at,
        engine=row.engine or "",
        keep_alive=row.keep_alive or "",
    )
    # A record of another version may have another shape. Nothing of such a record is shown.
    with suppress(*UNDECODABLE):
        return found._replace(
            places=tuple(
                place_of_seat(one["host"], one["accelerator_type"], one["accelerators"])
                for one in row.seats or ()
            ),
            surprises=_surprises(row.corrections or (), row.facts or ()),
        )
    return found


def _entry(row: Row[Any], workloads: Sequence[Workload]) -> HistoryEntry:
    requester = None
    with suppress(*UNDECODABLE):  # as above
        requester = row.requester and Requester.from_record(row.requester)
    found = release_of(row, workloads, None)
    summary = requester.summary if requester else row.requested_by or ""
    return HistoryEntry(found, row.rolled_back_to or "", requester, summary, row.tpot)


def _surprises(corrections: Sequence[Any], facts: Sequence[Any]) -> tuple[str, ...]:
    if not (corrections or facts):
        return ()
    from moorage.engines.recovery import Correction  # noqa: PLC0415  (few releases have any)
    from moorage.readiness.engine_facts import EngineFacts  # noqa: PLC0415  (as above)
    from moorage.releases.release import surprises_of  # noqa: PLC0415  (as above)

    return surprises_of(
        map(Correction.from_record, corrections), map(EngineFacts.from_record, facts)
    )
