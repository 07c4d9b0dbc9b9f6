"""Releases in the ledger: queries, and their rows decoded."""

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select, tuple_, union

from moorage.adapters.ledger.database import LedgerPart, reading
from moorage.adapters.ledger.packed_verdicts import unpack
from moorage.adapters.ledger.tables import CLAIMS, RELEASES, TRANSITION_LOG, WORKLOADS
from moorage.adapters.ledger.transitions import logged
from moorage.common.failures import Cause, Failure
from moorage.common.values import RECORDED
from moorage.engines.launch import Workload
from moorage.operations.stored_models import Need, needs
from moorage.releases.release import Release, ReleaseRow, ReleaseState, release_id
from moorage.releases.states import KEPT, SERVING, UNFINISHED, Transition
from moorage.spec import ModelSpec

MOST_PARAMETERS = 10_000
"""Of one query; SQLite takes 32,766."""


class ReleaseQueries(LedgerPart):
    """Reads the releases of all models."""

    def next_id(self, model: str) -> str:
        """The id that the next release of a model will get."""
        with reading(self._engine) as connection:
            return release_id(model, last_number(connection, model) + 1)

    def transitions(self, release: str) -> tuple[Transition, ...]:
        """Every change of state of a release, in order."""
        with reading(self._engine) as connection:
            return logged(connection, release)

    def get(self, identity: str) -> ReleaseRow:
        """One release; raises `UNKNOWN_RELEASE` where there is none."""
        rows = self._rows(select(RELEASES).where(RELEASES.c.id == identity))
        if not rows:
            raise Failure(Cause.UNKNOWN_RELEASE, identity)
        return rows[0]

    def running(self, model: str) -> ReleaseRow | None:
        """The release that serves a model name now, even if its host does not answer."""
        query = select(RELEASES).where(RELEASES.c.model == model, RELEASES.c.state.in_(SERVING))
        return next(iter(self._rows(query)), None)

    def asleep(self, model: str) -> ReleaseRow | None:
        """The release of a model that sleeps."""
        own = (RELEASES.c.model == model, RELEASES.c.state == ReleaseState.ASLEEP)
        return next(iter(self._rows(select(RELEASES).where(*own))), None)

    def of_model(self, model: str) -> list[ReleaseRow]:
        """All releases of a model, newest first."""
        query = select(RELEASES).where(RELEASES.c.model == model)
        return self._rows(query.order_by(RELEASES.c.number.desc()))

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
        """What releases that may be served again need of the stores."""
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
        """Failed releases with claims or workloads: their undo failed too, or was killed."""
        holding = union(select(WORKLOADS.c.release), select(CLAIMS.c.release))
        query = select(RELEASES).where(RELEASES.c.state == ReleaseState.ERROR)
        return self._rows(query.where(RELEASES.c.id.in_(holding)).order_by(RELEASES.c.created_at))

    def ids(self, beginning: str) -> list[str]:
        """Ids that begin so, in order of creation."""
        query = select(RELEASES.c.id).where(RELEASES.c.id.startswith(beginning, autoescape=True))
        with reading(self._engine) as connection:
            return list(connection.scalars(query.order_by(RELEASES.c.created_at)))

    def latest(self) -> list[ReleaseRow]:
        """The newest release of each model, by name."""
        newest = select(RELEASES.c.model, func.max(RELEASES.c.number)).group_by(RELEASES.c.model)
        query = select(RELEASES).where(tuple_(RELEASES.c.model, RELEASES.c.number).in_(newest))
        return self._rows(query.order_by(RELEASES.c.model))

    def _rows(self, query: Select[Any]) -> list[ReleaseRow]:
        with reading(self._engine) as connection:
            rows = connection.execute(query).all()
            own = defaultdict[str, list[Workload]](list)
            for start in range(0, len(rows), MOST_PARAMETERS):
                some = [row.id for row in rows[start : start + MOST_PARAMETERS]]
                written = select(WORKLOADS).where(WORKLOADS.c.release.in_(some))
                for one in connection.execute(written.order_by(WORKLOADS.c.name)):
                    own[one.release].append(workload_of(one.release, one.workload))
            return [release_of(row, own[row.id]) for row in rows]


def last_number(connection: Connection, model: str) -> int:
    """The number of the newest release of a model; 0 = there is none."""
    query = select(func.max(RELEASES.c.number)).where(RELEASES.c.model == model)
    return connection.scalar(query) or 0


def release_of(row: Row[Any], workloads: Iterable[Workload]) -> ReleaseRow:
    """A release from its row, with its workloads."""
    record = None
    if row.record is not None:
        # Another version may have written it in another shape. That is no failure, because releases
        # must stay manageable after an upgrade.
        with suppress(ValueError, LookupError, TypeError):
            record = Release.model_validate(unpack(row.record), context=RECORDED)
    columns = ReleaseRow.model_fields.keys() & row._mapping.keys()
    return ReleaseRow(
        **{name: row._mapping[name] for name in columns},
        release=record,
        foreign_record=row.record if record is None else None,
        # Workloads that serve come first, and are stopped first: the others support them.
        workloads=tuple(sorted(workloads, key=lambda one: not one.serves)),
    )


def workload_of(release: str, written: dict[str, Any]) -> Workload:
    """A workload of a release from its JSON. Unknown fields are left out."""
    known = Workload.model_fields.keys()
    return Workload.model_validate(
        {"release": release} | {name: value for name, value in written.items() if name in known}
    )


def spec_of(row: Row[Any]) -> ModelSpec:
    """The spec of a release, from its row."""
    return ModelSpec.model_validate(row.spec, context=RECORDED)
