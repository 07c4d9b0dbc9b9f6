"""Releases in the ledger: begun, moved from state to state, recorded once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Engine, Row, Select, func, insert, select, union, update

from moorage.adapters.ledger.database import gate, reading
from moorage.adapters.ledger.tables import CLAIMS, RELEASES, TRANSITION_LOG, WORKLOADS
from moorage.failures import Cause, Failure
from moorage.launch import Workload
from moorage.release import (
    TRANSITIONS,
    UNFINISHED,
    Release,
    ReleaseRow,
    ReleaseState,
    release_id,
)
from moorage.spec import ModelSpec


class Releases:
    """The releases of all models."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def next_id(self, model: str) -> str:
        """The id that the next release of a model will get."""
        with reading(self._engine) as connection:
            return release_id(model, _last_number(connection, model) + 1)

    def begin(self, spec: ModelSpec, revision: str, flow_run_id: str) -> str:
        """Begin a release in state `pending` and return its id."""
        with gate(self._engine) as connection:
            number = _last_number(connection, spec.name) + 1
            identity = release_id(spec.name, number)
            connection.execute(
                insert(RELEASES).values(
                    id=identity,
                    model=spec.name,
                    number=number,
                    state=ReleaseState.PENDING,
                    spec_digest=spec.digest,
                    revision=revision,
                    flow_run_id=flow_run_id,
                    cause="",
                    created_at=datetime.now(UTC),
                    updated_at=datetime.now(UTC),
                    spec=spec.model_dump(mode="json"),
                )
            )
            return identity

    def move(self, release: str, to: ReleaseState, cause: str = "") -> None:
        """Move a release to another state.

        Raises:
            Failure: `LOST_LOCK` when its state does not lead there: somebody else moved it.
        """
        with gate(self._engine) as connection:
            move(connection, release, to, cause)

    def explain(self, release: str, cause: str) -> None:
        """Write down better why a release is in the state that it is in."""
        with gate(self._engine) as connection:
            own = RELEASES.c.id == release
            connection.execute(update(RELEASES).where(own).values(cause=cause))

    def take_over(self, release: Release) -> None:
        """In one step: the record is written, the release runs, its predecessor is stopping."""
        with gate(self._engine) as connection:
            _write(connection, release)
            if release.replaced and state_of(connection, release.replaced) == ReleaseState.RUNNING:
                cause = f"superseded by {release.id}"
                move(connection, release.replaced, ReleaseState.STOPPING, cause)
            move(connection, release.id, ReleaseState.RUNNING)

    def give_up(self, release: str) -> bool:
        """Make sure that a release can no longer take over.

        Returns:
            Whether it is given up; False when it runs already, and must be left alone.
        """
        with gate(self._engine) as connection:
            state = state_of(connection, release)
            if state in UNFINISHED:
                move(connection, release, ReleaseState.ERROR)
            return state != ReleaseState.RUNNING

    def fail(self, release: str, cause: str, record: Release | None = None) -> None:
        """In one step: the record is written and the release has failed, unless it runs."""
        with gate(self._engine) as connection:
            state = state_of(connection, release)
            if state == ReleaseState.RUNNING:
                return
            if record is not None:
                _write(connection, record)
            if state == ReleaseState.ERROR:
                own = RELEASES.c.id == release
                connection.execute(update(RELEASES).where(own).values(cause=cause))
            else:
                move(connection, release, ReleaseState.ERROR, cause)

    def get(self, identity: str) -> ReleaseRow:
        """One release.

        Raises:
            Failure: `UNKNOWN_RELEASE`.
        """
        rows = self._rows(select(RELEASES).where(RELEASES.c.id == identity))
        if not rows:
            raise Failure(Cause.UNKNOWN_RELEASE, identity)
        return rows[0]

    def running(self, model: str) -> ReleaseRow | None:
        """The release that serves a model name now."""
        rows = self._rows(
            select(RELEASES).where(
                RELEASES.c.model == model, RELEASES.c.state == ReleaseState.RUNNING
            )
        )
        return rows[0] if rows else None

    def of_model(self, model: str) -> list[ReleaseRow]:
        """All releases of a model, newest first."""
        query = select(RELEASES).where(RELEASES.c.model == model)
        return self._rows(query.order_by(RELEASES.c.number.desc()))

    def in_states(self, states: Iterable[ReleaseState]) -> list[ReleaseRow]:
        """All releases in some states, in order of creation."""
        query = select(RELEASES).where(RELEASES.c.state.in_(list(states)))
        return self._rows(query.order_by(RELEASES.c.created_at))

    def unfinished(self) -> list[ReleaseRow]:
        """Releases in states that only a living flow may leave behind."""
        return self.in_states(UNFINISHED)

    def not_undone(self) -> list[ReleaseRow]:
        """Releases that failed and still hold something: an undo failed too, or was killed."""
        holding = union(select(WORKLOADS.c.release), select(CLAIMS.c.release))
        query = select(RELEASES).where(
            RELEASES.c.state == ReleaseState.ERROR, RELEASES.c.id.in_(holding)
        )
        return self._rows(query.order_by(RELEASES.c.created_at))

    def ids(self, beginning: str) -> list[str]:
        """Ids of all releases that begin so, in order of creation."""
        query = select(RELEASES.c.id).where(RELEASES.c.id.startswith(beginning, autoescape=True))
        with reading(self._engine) as connection:
            return list(connection.scalars(query.order_by(RELEASES.c.created_at)))

    def latest(self) -> list[ReleaseRow]:
        """The newest release of each model, by name."""
        newest = (
            select(RELEASES.c.model, func.max(RELEASES.c.number).label("number"))
            .group_by(RELEASES.c.model)
            .subquery()
        )
        query = select(RELEASES).join(
            newest,
            (RELEASES.c.model == newest.c.model) & (RELEASES.c.number == newest.c.number),
        )
        return self._rows(query.order_by(RELEASES.c.model))

    def _rows(self, query: Select[Any]) -> list[ReleaseRow]:
        with reading(self._engine) as connection:
            return [_row(connection, row) for row in connection.execute(query)]


def state_of(connection: Connection, release: str) -> ReleaseState:
    """The state of a release inside a transaction."""
    state = connection.scalar(select(RELEASES.c.state).where(RELEASES.c.id == release))
    if state is None:
        raise Failure(Cause.UNKNOWN_RELEASE, release)
    return ReleaseState(state)


def move(connection: Connection, release: str, to: ReleaseState, cause: str = "") -> None:
    """Move a release inside a transaction, and log the transition."""
    before = state_of(connection, release)
    if to not in TRANSITIONS[before]:
        raise Failure(Cause.LOST_LOCK, f"{release} is {before} and cannot become {to}")
    if to == ReleaseState.RUNNING and (other := _other_running(connection, release)):
        raise Failure(Cause.LOST_LOCK, f"{other} runs, so {release} cannot")
    now = datetime.now(UTC)
    connection.execute(
        update(RELEASES)
        .where(RELEASES.c.id == release)
        .values(state=to, cause=cause, updated_at=now)
    )
    connection.execute(
        insert(TRANSITION_LOG).values(
            release=release, from_state=before, to_state=to, cause=cause, at=now
        )
    )


def _other_running(connection: Connection, release: str) -> str | None:
    own = select(RELEASES.c.model).where(RELEASES.c.id == release).scalar_subquery()
    query = select(RELEASES.c.id).where(
        RELEASES.c.model == own, RELEASES.c.state == ReleaseState.RUNNING
    )
    return connection.scalar(query)


def _write(connection: Connection, release: Release) -> None:
    """Write the audit record, once: records never change."""
    written = connection.execute(
        update(RELEASES)
        .where(RELEASES.c.id == release.id, RELEASES.c.record.is_(None))
        .values(record=release.model_dump(mode="json"))
    )
    if written.rowcount != 1:
        raise Failure(Cause.LOST_LOCK, f"{release.id} has a record already")


def _last_number(connection: Connection, model: str) -> int:
    query = select(func.max(RELEASES.c.number)).where(RELEASES.c.model == model)
    return connection.scalar(query) or 0


def _row(connection: Connection, row: Row[Any]) -> ReleaseRow:
    found = connection.scalars(
        select(WORKLOADS.c.workload).where(WORKLOADS.c.release == row.id).order_by(WORKLOADS.c.name)
    )
    known = Workload.model_fields.keys()
    workloads = (
        Workload.model_validate({"release": row.id} | {k: v for k, v in one.items() if k in known})
        for one in found
    )
    record = _readable(row.record)
    return ReleaseRow(
        id=row.id,
        model=row.model,
        number=row.number,
        state=ReleaseState(row.state),
        spec_digest=row.spec_digest,
        revision=row.revision,
        flow_run_id=row.flow_run_id,
        created_at=_utc(row.created_at),
        updated_at=_utc(row.updated_at),
        cause=row.cause,
        release=record,
        foreign_record=row.record if record is None else None,
        # What answers comes first, also when they are stopped: the others only help it.
        workloads=tuple(sorted(workloads, key=lambda one: not one.serves)),
    )


def _readable(record: dict[str, Any] | None) -> Release | None:
    """The record, unless another version of moorage wrote it in a shape that is not known here.

    What runs must stay manageable after an upgrade, so this is no reason to fail.
    """
    if record is None:
        return None
    try:
        return Release.model_validate(record)
    except ValidationError:
        return None


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
