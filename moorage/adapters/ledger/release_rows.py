"""Queries of the releases in the ledger."""

from collections.abc import Iterable
from itertools import count
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from moorage.adapters.ledger.database import LedgerPart, reading
from moorage.adapters.ledger.decoding import NOT_UNDONE, release_of, workloads_of
from moorage.adapters.ledger.tables import RELEASES, TRANSITION_LOG
from moorage.adapters.ledger.transitions import logged
from moorage.adapters.ledger.verdicts import with_verdicts
from moorage.common.failures import Cause, Failure
from moorage.operations.stored_models import Need, needs
from moorage.releases.release_row import ReleaseRow, release_id
from moorage.releases.states import KEPT, SERVING, UNFINISHED, ReleaseState, Transition
from moorage.spec import ModelSpec

PAGE = 10
"""Records read at once in a search. Most searches end at the first or second."""


class ReleaseQueries(LedgerPart):
    """Reads the releases of all models.

    A single release has its whole record. In a list the placements have no verdicts.
    """

    def next_id(self, model: str) -> str:
        """The id that the next release of a model will get."""
        with reading(self._engine) as connection:
            return release_id(model, last_number(connection, model) + 1)

    def transitions(self, release: str) -> tuple[Transition, ...]:
        """Every change of state of a release, in order."""
        with reading(self._engine) as connection:
            return logged(connection, release)

    def get(self, identity: str) -> ReleaseRow:
        """The release of an id; raises `UNKNOWN_RELEASE` if it does not exist."""
        row = self._row(select(RELEASES).where(RELEASES.c.id == identity))
        if row is None:
            raise Failure(Cause.UNKNOWN_RELEASE, identity)
        return row

    def running(self, model: str) -> ReleaseRow | None:
        """The release that serves a model name now, even if its host does not answer."""
        serving = (RELEASES.c.model == model, RELEASES.c.state.in_(SERVING))
        return self._row(select(RELEASES).where(*serving))

    def asleep(self, model: str) -> ReleaseRow | None:
        """The sleeping release of a model."""
        own = (RELEASES.c.model == model, RELEASES.c.state == ReleaseState.ASLEEP)
        return self._row(select(RELEASES).where(*own))

    def newest(self, model: str) -> ReleaseRow | None:
        """The newest release of a model."""
        query = select(RELEASES).where(RELEASES.c.model == model)
        return self._row(query.order_by(RELEASES.c.number.desc()))

    def of_model(self, model: str, limit: int | None = None, skip: int = 0) -> list[ReleaseRow]:
        """Releases of a model, newest first: all, or at most `limit` after the first `skip`."""
        query = select(RELEASES).where(RELEASES.c.model == model)
        return self._rows(query.order_by(RELEASES.c.number.desc()).limit(limit).offset(skip))

    def last_that_ran(self, model: str) -> ReleaseRow | None:
        """The newest release of a model that ever served; hardly any older record is read."""
        for skip in count(step=PAGE):
            rows = self.of_model(model, PAGE, skip)
            if found := next((row for row in rows if row.release and row.release.ran), None):
                return found
            if len(rows) < PAGE:
                break
        return None

    def in_states(self, states: Iterable[ReleaseState]) -> list[ReleaseRow]:
        """All releases in some states, in order of creation."""
        query = select(RELEASES).where(RELEASES.c.state.in_(list(states)))
        return self._rows(query.order_by(RELEASES.c.created_at))

    def specs(self, identities: Iterable[str]) -> dict[str, ModelSpec]:
        """Specs by release."""
        query = select(RELEASES.c.id, RELEASES.c.spec).where(RELEASES.c.id.in_(list(identities)))
        with reading(self._engine) as connection:
            return {row.id: spec_of(row) for row in connection.execute(query)}

    def needs(self) -> tuple[Need, ...]:
        """The needs, in stored models, of releases that may be served again."""
        rows = self.in_states(KEPT)
        return needs(rows, self.specs(row.id for row in rows))

    def moved_by(self, flow_run_id: str) -> list[ReleaseRow]:
        """Releases that a flow run has moved, in order of creation."""
        moved = select(TRANSITION_LOG.c.release).where(TRANSITION_LOG.c.flow_run_id == flow_run_id)
        query = select(RELEASES).where(RELEASES.c.id.in_(moved))
        return self._rows(query.order_by(RELEASES.c.created_at))

    def unfinished(self) -> list[ReleaseRow]:
        """Releases in states that only a living flow may leave behind."""
        return self.in_states(UNFINISHED)

    def not_undone(self) -> list[ReleaseRow]:
        """Failed releases with claims or workloads: their undo also failed, or was killed."""
        query = select(RELEASES).where(NOT_UNDONE)
        return self._rows(query.order_by(RELEASES.c.created_at))

    def ids(self, beginning: str) -> list[str]:
        """Ids of releases with this beginning, in order of creation."""
        query = select(RELEASES.c.id).where(RELEASES.c.id.startswith(beginning, autoescape=True))
        with reading(self._engine) as connection:
            return list(connection.scalars(query.order_by(RELEASES.c.created_at)))

    def models(self) -> list[str]:
        """The names of all models, in order."""
        with reading(self._engine) as connection:
            query = select(RELEASES.c.model).distinct().order_by(RELEASES.c.model)
            return list(connection.scalars(query))

    def _row(self, query: Select[Any]) -> ReleaseRow | None:
        with reading(self._engine) as connection:
            row = connection.execute(query.limit(1)).first()
            if row is None:
                return None
            record = with_verdicts(connection, row.id, row.record)
            return release_of(row, workloads_of(connection, [row.id])[row.id], record)

    def _rows(self, query: Select[Any]) -> list[ReleaseRow]:
        with reading(self._engine) as connection:
            rows = connection.execute(query).all()
            own = workloads_of(connection, [row.id for row in rows])
            return [release_of(row, own[row.id], row.record) for row in rows]


def last_number(connection: Connection, model: str) -> int:
    """The number of the newest release of a model; 0 = the model has no release."""
    query = select(func.max(RELEASES.c.number)).where(RELEASES.c.model == model)
    return connection.scalar(query) or 0


def spec_of(row: Row[Any]) -> ModelSpec:
    """The spec of a release, from its row."""
    return ModelSpec.from_record(row.spec)
