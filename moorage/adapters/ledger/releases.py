"""Releases in the ledger: begun, moved from state to state, recorded once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Engine, Row, Select, func, insert, select, union, update

from moorage.adapters.ledger.claims import free, hand_back
from moorage.adapters.ledger.database import gate, reading
from moorage.adapters.ledger.tables import CLAIMS, RELEASES, TRANSITION_LOG, WORKLOADS
from moorage.adapters.ledger.transitions import Change, changing, logged, utc
from moorage.common.failures import Cause, Failure
from moorage.common.input_value import RECORDED
from moorage.engines.launch import Workload
from moorage.inventory.claims import Claim
from moorage.releases.release import Release, ReleaseRow, ReleaseState, Restart, release_id
from moorage.releases.states import SERVING, UNFINISHED, Transition, outage
from moorage.spec import ModelSpec

RESTARTS_KEPT = 100


class Releases:
    """The releases of all models."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def next_id(self, model: str) -> str:
        """The id that the next release of a model will get."""
        with reading(self._engine) as connection:
            return release_id(model, _last_number(connection, model) + 1)

    def begin(self, spec: ModelSpec, revision: str, flow_run_id: str) -> str:
        """Begin a release in state `pending` and return its id.

        Args:
            spec: The requested model.
            revision: Of its model; empty = not known yet, see `pin`.
            flow_run_id: Who begins it.
        """
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

    def pin(self, release: str, revision: str) -> None:
        """Write down which revision of its model a release is about."""
        with gate(self._engine) as connection:
            own = RELEASES.c.id == release
            connection.execute(update(RELEASES).where(own).values(revision=revision))

    def move(self, release: str, to: ReleaseState, cause: str = "") -> None:
        """Move a release to another state.

        Raises:
            Failure: `LOST_LOCK` when its state does not lead there: somebody else moved it.
        """
        with changing(self._engine) as change:
            change.move(release, to, cause)

    def end(self, release: str, to: ReleaseState, cause: str = "") -> None:
        """In one step: a release is in a final state, and holds nothing any more."""
        with changing(self._engine) as change:
            change.move(release, to, cause)
            free(change.connection, release)

    def explain(self, release: str, cause: str) -> None:
        """Write down better why a release is in the state that it is in."""
        with gate(self._engine) as connection:
            own = RELEASES.c.id == release
            connection.execute(update(RELEASES).where(own).values(cause=cause))

    def take_over(self, release: Release) -> Release:
        """In one step: the record is written, the release runs, its predecessor is stopping.

        Returns:
            The record as it was written: with how long nobody served the name before.
        """
        with changing(self._engine) as change:
            recorded = _with_downtime(change, release)
            _write(change.connection, recorded)
            if release.replaced and change.state_of(release.replaced) in SERVING:
                cause = f"superseded by {release.id}"
                change.move(release.replaced, ReleaseState.STOPPING, cause)
            change.move(release.id, ReleaseState.RUNNING)
        return recorded

    def give_up(
        self, release: str, cause: str, back_to: str = "", claims: Sequence[Claim] = ()
    ) -> bool:
        """In one step: a release has failed and can no longer take over; it holds nothing.

        One that has written down a workload keeps its claims until that is gone.

        Args:
            release: The release.
            cause: Why.
            back_to: Release that had to make room for it and gets its own claims back.
            claims: Those claims.

        Returns:
            Whether it is given up; False when it serves already, and must be left alone.
        """
        with changing(self._engine) as change:
            state = change.state_of(release)
            if state in UNFINISHED:
                change.move(release, ReleaseState.ERROR, cause)
                if not _workloads(change.connection, release):
                    hand_back(change.connection, release, back_to, claims)
            return state not in SERVING

    def revise(self, row: ReleaseRow, spec: ModelSpec) -> None:
        """Let the record of what serves say those fields of its spec that do not change what runs.

        Args:
            row: The release, with its record.
            spec: A spec of the same digest.
        """
        if not row.release or row.release.spec == spec or row.spec_digest != spec.digest:
            return
        record = row.release.model_copy(update={"spec": spec}).model_dump(mode="json")
        written = {"record": record, "spec": record["spec"]}
        with gate(self._engine) as connection:
            own = (RELEASES.c.id == row.id, RELEASES.c.state.in_(SERVING))
            connection.execute(update(RELEASES).where(*own).values(**written))

    def started_again(self, release: str, again: Restart) -> None:
        """Add a start of what died to the record of a release; without a record nothing happens."""
        own = RELEASES.c.id == release
        with gate(self._engine) as connection:
            record = connection.scalar(select(RELEASES.c.record).where(own))
            if record is None:
                return
            every = [*record.get("restarts", ()), again.model_dump(mode="json")]
            written = {**record, "restarts": every[-RESTARTS_KEPT:]}
            connection.execute(update(RELEASES).where(own).values(record=written))

    def fail(self, release: str, cause: str, record: Release | None = None) -> None:
        """In one step: the record is written and the release has failed, unless it serves."""
        with changing(self._engine) as change:
            connection, state = change.connection, change.state_of(release)
            if state in SERVING:
                return
            if record is not None:
                _write(connection, record)
            if state == ReleaseState.ERROR:
                own = RELEASES.c.id == release
                connection.execute(update(RELEASES).where(own).values(cause=cause))
            else:
                change.move(release, ReleaseState.ERROR, cause)

    def transitions(self, release: str) -> tuple[Transition, ...]:
        """Every change of state of a release, in order."""
        with reading(self._engine) as connection:
            return logged(connection, release)

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
        """The release that serves a model name now, whether or not it can be seen."""
        rows = self._rows(
            select(RELEASES).where(RELEASES.c.model == model, RELEASES.c.state.in_(SERVING))
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

    def specs(self, identities: Iterable[str]) -> dict[str, ModelSpec]:
        """Specs by release."""
        query = select(RELEASES.c.id, RELEASES.c.spec).where(RELEASES.c.id.in_(list(identities)))
        with reading(self._engine) as connection:
            return {row.id: spec_of(row) for row in connection.execute(query)}

    def moved_by(self, flow_run_id: str) -> list[ReleaseRow]:
        """Releases that a flow run has moved, in order of creation."""
        moved = select(TRANSITION_LOG.c.release).where(TRANSITION_LOG.c.flow_run_id == flow_run_id)
        query = select(RELEASES).where(RELEASES.c.id.in_(moved))
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


def _with_downtime(change: Change, release: Release) -> Release:
    if not release.replaced:
        return release
    seconds = 0.0
    if change.state_of(release.replaced) not in SERVING:
        seconds = outage(
            logged(change.connection, release.replaced), release.created_at, datetime.now(UTC)
        )
    return release.model_copy(update={"downtime_seconds": seconds})


def _write(connection: Connection, release: Release) -> None:
    """Write the audit record, once; only `revise` touches it again."""
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


def _workloads(connection: Connection, release: str) -> list[dict[str, Any]]:
    query = select(WORKLOADS.c.workload).where(WORKLOADS.c.release == release)
    return list(connection.scalars(query.order_by(WORKLOADS.c.name)))


def release_of(row: Row[Any], workloads: Iterable[Workload]) -> ReleaseRow:
    """A release as it is written in its row, with what it runs."""
    record = _readable(row.record)
    return ReleaseRow(
        id=row.id,
        model=row.model,
        number=row.number,
        state=ReleaseState(row.state),
        spec_digest=row.spec_digest,
        revision=row.revision,
        flow_run_id=row.flow_run_id,
        created_at=utc(row.created_at),
        updated_at=utc(row.updated_at),
        cause=row.cause,
        release=record,
        foreign_record=row.record if record is None else None,
        # What answers comes first, also when they are stopped: the others only help it.
        workloads=tuple(sorted(workloads, key=lambda one: not one.serves)),
    )


def workload_of(release: str, written: dict[str, Any]) -> Workload:
    """A workload of a release as it is written; what this moorage does not know is left out."""
    known = Workload.model_fields.keys()
    return Workload.model_validate(
        {"release": release} | {name: value for name, value in written.items() if name in known}
    )


def spec_of(row: Row[Any]) -> ModelSpec:
    """The spec of a release, decoded from its row."""
    return ModelSpec.model_validate(row.spec, context=RECORDED)


def _row(connection: Connection, row: Row[Any]) -> ReleaseRow:
    written = _workloads(connection, row.id)
    return release_of(row, (workload_of(row.id, one) for one in written))


def _readable(record: dict[str, Any] | None) -> Release | None:
    """The record, unless another version of moorage wrote it in a shape that is not known here.

    What runs must stay manageable after an upgrade, so this is no reason to fail.
    """
    if record is None:
        return None
    try:
        return Release.model_validate(record, context=RECORDED)
    except ValidationError:
        return None
