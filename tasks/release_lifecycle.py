"""The life of a release as its flow leads it: from state to state, and closed when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moorage.adapters.prefect.api_errors import server_failure
from moorage.common.failures import Cause, Failure
from moorage.inventory.claims import Claim
from moorage.releases.release import ReleaseRow, ReleaseState
from moorage.spec import ModelSpec
from tasks.context import in_full, in_thread, ledger, to_its_end, was_interrupted
from tasks.journal import Journal


async def begin(spec: ModelSpec, flow_run_id: str) -> str:
    """Begin a release; its id. One that was begun for a flow that was stopped then is closed."""
    try:
        return await in_full(ledger().releases.begin, spec, "", flow_run_id)
    except BaseException as error:
        cause = cause_of(error)
        to_its_end(lambda: close_begun(spec.name, flow_run_id, cause))
        raise


def close_begun(model: str, flow_run_id: str, cause: str) -> None:
    """Undo of `begin`: close what a flow run has begun of a model, whose lock it holds."""
    for row in ledger().releases.unfinished():
        if (row.model, row.flow_run_id, row.state) == (model, flow_run_id, ReleaseState.PENDING):
            ledger().releases.give_up(row.id, cause)


async def enter(release: str, state: ReleaseState, cause: str = "") -> None:
    """Move a release on."""
    await in_thread(ledger().releases.move, release, state, cause)


@contextmanager
def closed(release: str, old: ReleaseRow | None, journal: Journal) -> Iterator[None]:
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
        to_its_end(lambda: _give_up(release, cause, old, journal))
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
