"""The record and the states of a release while its flow makes it, until it serves or fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from moorage.adapters.prefect.api_errors import server_failure
from moorage.common.failures import Cause, Failure
from moorage.inventory.claims import Claim
from moorage.placement.placement import Analyzed
from moorage.placement.propose import NoFit
from moorage.releases.release import FailureRecord, Release, ReleaseRow, ReleaseState
from moorage.releases.timeline import outage
from moorage.spec import ModelSpec
from tasks.context import in_thread, ledger, run_shielded, run_uninterrupted, was_interrupted
from tasks.journal import Journal


class ReleaseDraft:
    """The record of a release while it is made.

    Attributes:
        release: The record as far as it has come.

    Args:
        journal: Its steps go into the record.
        old: The release that it replaces; None = nothing serves.
    """

    release: Release

    def __init__(self, journal: Journal, old: ReleaseRow | None) -> None:
        self._journal, self._old = journal, old

    async def begin(self, spec: ModelSpec, flow_run_id: str, facts: Mapping[str, Any]) -> str:
        """Begin the release in the ledger; returns its id."""
        at = datetime.now(UTC)
        identity = await begin_release(spec, flow_run_id)
        self.release = Release.begun(identity, spec, flow_run_id, at, self._old, **facts)
        return identity

    async def enter(self, state: ReleaseState) -> None:
        """Move the release on."""
        await in_thread(ledger().releases.move, self.release.id, state)

    async def pin(self, analyzed: Analyzed) -> None:
        """Pin the release to the revisions that were resolved."""
        model = analyzed.model
        await in_thread(ledger().releases.pin, self.release.id, model.revision)
        self.add(revision=model.revision, companions=model.pins, profile=analyzed.profile)

    def add(self, **values: object) -> None:
        """Add values that a step has made."""
        self.release = self.release.model_copy(update=values)

    def finish(self, **values: object) -> None:
        """Add the last values, the steps and the end."""
        self.add(steps=tuple(self._journal.steps), finished_at=datetime.now(UTC), **values)

    async def fail(self, error: Exception, failure: Failure) -> None:
        """Record why the release failed."""
        if isinstance(error, NoFit):
            self.add(placement=error.placement)
        record = FailureRecord(
            cause=failure.cause,
            detail=failure.detail,
            suggestion=failure.suggestion,
            log_tail=failure.log_tail,
        )
        downtime = await in_thread(_downtime, self._old, self.release)
        self.finish(downtime_seconds=downtime, failure=record)
        await in_thread(ledger().releases.fail, self.release.id, failure.cause, self.release)


async def begin_release(spec: ModelSpec, flow_run_id: str) -> str:
    """Begin a release; its id. One that was begun for a flow that was stopped then is closed."""
    try:
        return await run_uninterrupted(ledger().releases.begin, spec, "", flow_run_id)
    except BaseException as error:
        cause = cause_of(error)
        run_shielded(lambda: close_begun(spec.name, flow_run_id, cause))
        raise


def close_begun(model: str, flow_run_id: str, cause: str) -> None:
    """Undo of `begin_release`: close what a flow run has begun of a model, whose lock it holds."""
    for row in ledger().releases.unfinished():
        if (row.model, row.flow_run_id, row.state) == (model, flow_run_id, ReleaseState.PENDING):
            ledger().releases.give_up(row.id, cause)


@contextmanager
def close_on_failure(release: str, old: ReleaseRow | None, journal: Journal) -> Iterator[None]:
    """Close a release at once when the block fails, before anything of it is undone.

    So it cannot take over any more, its transition has the cause and the moment of the failure,
    and what it holds is free in the same transaction, unless something was started.

    Args:
        release: The release.
        old: The one that serves; it gets its claims back where it had to make room.
        journal: Is told when the ledger does not take it.
    """
    try:
        yield
    except BaseException as error:
        cause = cause_of(error)
        run_shielded(lambda: _give_up(release, cause, old, journal))
        raise


def cause_of(error: BaseException) -> str:
    """Why a release ends that raised this: a cause of ours, or what went wrong inside."""
    if failure := error if isinstance(error, Failure) else server_failure(error):
        return failure.cause
    if isinstance(error, TimeoutError):
        return Cause.STEP_TIMEOUT
    return Cause.INTERRUPTED if was_interrupted(error) else f"internal: {error!r}"


def claims_of(row: ReleaseRow | None) -> tuple[str, tuple[Claim, ...]]:
    """A release that may have had to make room, and what it claimed; nothing for none."""
    if row is None or row.release is None or row.release.placement is None:
        return "", ()
    return row.id, row.release.placement.claims


def _give_up(release: str, cause: str, old: ReleaseRow | None, journal: Journal) -> None:
    try:
        ledger().releases.give_up(release, cause, *claims_of(old))
    except Failure as failure:
        journal.tell(f"could not close {release}: {failure}")


def _downtime(old: ReleaseRow | None, draft: Release) -> float | None:
    """How long a release that stopped for one that failed has served nobody; None = no release.

    It was started again by now, or never stopped.
    """
    if old is None:
        return None
    return outage(ledger().releases.transitions(old.id), draft.created_at, datetime.now(UTC))
