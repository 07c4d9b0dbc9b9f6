"""Releases in the ledger: changes of state, records, and workloads."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from moorage.adapters.ledger.claims import free, hand_back, insert_claims
from moorage.adapters.ledger.database import LedgerPart, gate
from moorage.adapters.ledger.decoding import release_of, workloads_of
from moorage.adapters.ledger.release_rows import ReleaseQueries, last_number
from moorage.adapters.ledger.tables import RELEASES, WORKLOADS, replace_rows
from moorage.adapters.ledger.transitions import Change, changing, logged
from moorage.adapters.ledger.verdicts import take_verdicts
from moorage.common.failures import Cause, Failure
from moorage.engines.workload import Workload
from moorage.inventory.claims import Claim
from moorage.releases.addresses import reached_at
from moorage.releases.release import FailureRecord, Release, Restart
from moorage.releases.release_row import ReleaseRow, release_id
from moorage.releases.states import DEPLOYED, FINAL, SERVING, UNFINISHED, ReleaseState, outage
from moorage.spec import ModelSpec

RESTARTS_KEPT = 100


class Releases(ReleaseQueries):
    """Reads and changes the releases of all models."""

    def begin(self, spec: ModelSpec, revision: str, flow_run_id: str) -> str:
        """Begin a release in state `pending` and return its id.

        The revision is empty while it is unknown; see `pin`.
        """
        now = datetime.now(UTC)
        with gate(self._engine) as connection:
            number = last_number(connection, spec.name) + 1
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
                    created_at=now,
                    updated_at=now,
                    spec=spec.model_dump(mode="json"),
                )
            )
            return identity

    def pin(self, release: str, revision: str) -> None:
        """Write the revision of a release's model."""
        with gate(self._engine) as connection:
            _update(connection, release, revision=revision)

    def move(self, release: str, to: ReleaseState, cause: str = "") -> None:
        """Move a release to another state; raises as `Change.move`."""
        with changing(self._engine) as change:
            change.move(release, to, cause)

    def end(
        self, release: str, to: ReleaseState, cause: str = "", kept: Sequence[Claim] = ()
    ) -> None:
        """Move a release to a state in which it serves nobody, and free its claims in one step.

        A release that falls asleep keeps its ports, because it is to wake where it ran. If its
        engines sleep instead of stopping, it also keeps the claims `kept`. With a release that is
        stopped for good, the failed ones of its model are retired.
        """
        with changing(self._engine) as change:
            change.move(release, to, cause)
            if to == ReleaseState.STOPPED:
                _retire_failed(change.connection, change.made[-1].model)
            free(change.connection, release, but_ports=to == ReleaseState.ASLEEP)
            insert_claims(change.connection, release, kept)

    def retire_failed(self, model: str) -> int:
        """Retire the failed releases of a model that does not run; returns their number."""
        with gate(self._engine) as connection:
            return _retire_failed(connection, model)

    def explain(self, release: str, cause: str) -> None:
        """Replace the reason for the state of a release."""
        with gate(self._engine) as connection:
            _update(connection, release, cause=cause)

    def take_over(self, release: Release) -> Release:
        """In one transaction write the record, run the release and stop its predecessor.

        Returns the record as written: with the time in which no release served the name.
        """
        with changing(self._engine) as change:
            recorded = _with_downtime(change, release)
            _write_record(change.connection, recorded)
            if release.replaced and change.state_of(release.replaced) in SERVING:
                cause = f"superseded by {release.id}"
                change.move(release.replaced, ReleaseState.STOPPING, cause)
            change.move(release.id, ReleaseState.RUNNING)
            _end_sleepers(change, release)
        return recorded

    def give_up(
        self, release: str, cause: str, back_to: str = "", claims: Sequence[Claim] = ()
    ) -> bool:
        """In one transaction fail a release and free its claims; it can no longer take over.

        A release with a workload in the ledger keeps its claims. Otherwise `back_to`, the release
        that made room for it, gets its `claims` back. False: it already serves, and is left alone.
        """
        with changing(self._engine) as change:
            state = change.state_of(release)
            if state in UNFINISHED:
                change.move(release, ReleaseState.ERROR, cause)
                started = select(WORKLOADS.c.name).where(WORKLOADS.c.release == release).limit(1)
                if change.connection.scalar(started) is None:
                    hand_back(change.connection, release, back_to, claims)
            return state not in SERVING

    def revise(self, row: ReleaseRow, spec: ModelSpec) -> None:
        """Update the fields of a deployed release's spec that do not count for its digest."""
        if not row.release or row.release.spec == spec or row.spec_digest != spec.digest:
            return
        written = spec.model_dump(mode="json")
        own = (RELEASES.c.id == row.id, RELEASES.c.state.in_(DEPLOYED))
        with gate(self._engine) as connection:
            # The row may be reached as a run's own fleet says, which is not for the record.
            if record := connection.scalar(select(RELEASES.c.record).where(*own)):
                changed = {**record, "spec": written}
                _update(connection, row.id, record=changed, spec=written)

    def readdress(self, release: str, addresses: Mapping[str, str]) -> None:
        """Write how hosts of a release are reached now, as `Access.url`: in workloads and plan."""
        with gate(self._engine) as connection:
            found = connection.execute(select(RELEASES).where(RELEASES.c.id == release)).one()
            before = release_of(found, workloads_of(connection, [release])[release], found.record)
            now = reached_at(before, addresses)
            for old, new in zip(before.workloads, now.workloads, strict=True):
                if new != old:
                    _write_workload(connection, release, new)
            if now.plan and now.plan != before.plan:
                # Only the addresses: a newer moorage may have written fields that this one drops.
                plan = found.record["plan"]
                pairs = zip(plan["containers"], now.plan.containers, strict=True)
                containers = [{**written, "address": one.address} for written, one in pairs]
                record = {**found.record, "plan": {**plan, "containers": containers}}
                _update(connection, release, record=record)

    def add_restart(self, release: str, restart: Restart) -> None:
        """Add a restart to the record of a release, if it has one."""
        with gate(self._engine) as connection:
            record = connection.scalar(select(RELEASES.c.record).where(RELEASES.c.id == release))
            if record is not None:
                restarts = [*record.get("restarts", ()), restart.model_dump(mode="json")]
                changed = {**record, "restarts": restarts[-RESTARTS_KEPT:]}
                _update(connection, release, record=changed)

    def note_wake(self, release: str, failure: FailureRecord | None) -> None:
        """Replace the failure to wake in the record of a release, if it has one; None = it woke."""
        self._note(release, wake_failure=failure.model_dump(mode="json") if failure else None)

    def note_declined(self, release: str, changes: Sequence[str]) -> None:
        """Replace the changes that nobody approved in the record of a release, if it has one."""
        self._note(release, declined=[*changes])

    def _note(self, release: str, **fields: Any) -> None:
        with gate(self._engine) as connection:
            record = connection.scalar(select(RELEASES.c.record).where(RELEASES.c.id == release))
            if record is not None:
                _update(connection, release, record={**record, **fields})

    def fail(self, release: str, cause: str, record: Release | None = None) -> None:
        """In one transaction write the record and fail the release, unless it serves."""
        with changing(self._engine) as change:
            state = change.state_of(release)
            if state in SERVING:
                return
            if record is not None:
                _write_record(change.connection, record)
            if state == ReleaseState.ERROR:
                _update(change.connection, release, cause=cause)
            else:
                change.move(release, ReleaseState.ERROR, cause)


def _retire_failed(connection: Connection, model: str) -> int:
    failed = (RELEASES.c.state == ReleaseState.ERROR, RELEASES.c.retired_at.is_(None))
    own = update(RELEASES).where(RELEASES.c.model == model, *failed)
    return connection.execute(own.values(retired_at=datetime.now(UTC))).rowcount


def _end_sleepers(change: Change, release: Release) -> None:
    """Supersede the sleeping release of the model. It serves nobody, so it need not stop first."""
    asleep = (RELEASES.c.model == release.model, RELEASES.c.state == ReleaseState.ASLEEP)
    for identity in change.connection.scalars(select(RELEASES.c.id).where(*asleep)).all():
        change.move(identity, ReleaseState.SUPERSEDED, f"superseded by {release.id}")
        free(change.connection, identity)


def _with_downtime(change: Change, release: Release) -> Release:
    if not release.replaced:
        return release
    seconds = 0.0
    if change.state_of(release.replaced) not in SERVING:
        transitions = logged(change.connection, release.replaced)
        seconds = outage(transitions, release.created_at, datetime.now(UTC))
    return release.model_copy(update={"downtime_seconds": seconds})


def _update(connection: Connection, release: str, **values: Any) -> None:
    connection.execute(update(RELEASES).where(RELEASES.c.id == release).values(**values))


def _write_record(connection: Connection, release: Release) -> None:
    """Write the audit record; only `revise`, `readdress`, `add_restart`, `note_...` change it."""
    record = take_verdicts(connection, release.id, release.model_dump(mode="json"))
    written = connection.execute(
        update(RELEASES)
        .where(RELEASES.c.id == release.id, RELEASES.c.record.is_(None))
        .values(record=record)
    )
    if written.rowcount != 1:
        raise Failure(Cause.LOST_LOCK, f"{release.id} has a record already")


class Workloads(LedgerPart):
    """The workloads of all releases."""

    def begin(self, release: str, workload: Workload) -> None:
        """Write a workload before its start.

        Raises:
            Failure: `LOST_LOCK` when its release is in a final state: a flow that was suspended for
                too long must not start a release that others have undone.
        """
        with gate(self._engine) as connection:
            state = connection.scalar(select(RELEASES.c.state).where(RELEASES.c.id == release))
            if state in FINAL:
                raise Failure(Cause.LOST_LOCK, f"{release} is {state}: {workload.name} not started")
            _write_workload(connection, release, workload)

    def put(self, release: str, workload: Workload) -> None:
        """Write a workload, or replace it."""
        with gate(self._engine) as connection:
            _write_workload(connection, release, workload)

    def drop(self, name: str) -> None:
        """Delete a workload, if it exists."""
        with gate(self._engine) as connection:
            connection.execute(delete(WORKLOADS).where(WORKLOADS.c.name == name))


def _write_workload(connection: Connection, release: str, workload: Workload) -> None:
    content = workload.model_dump(mode="json")
    row = {"name": workload.name, "release": release, "workload": content}
    replace_rows(connection, WORKLOADS, WORKLOADS.c.name == workload.name, [row])
