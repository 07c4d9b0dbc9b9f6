"""End releases: on purpose, after a failure, and what a killed flow left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from moorage.adapters.ledger.locks import LockHeld
from moorage.common.failures import Cause, Failure
from moorage.engines.stopping import Ending, ending
from moorage.releases.release import ReleaseRow, ReleaseState
from moorage.releases.states import SERVING, UNFINISHED
from moorage.spec import StoppingSpec
from tasks.context import hold_lock, ledger, run_uninterrupted, settings
from tasks.journal import Journal
from tasks.launch import ABORT_SECONDS, stop_all
from tasks.probing import lease_of
from tasks.release_lifecycle import claims_of

SUPERSEDED = "superseded by"
"""How the cause of a release begins that stops for its successor (`tasks/stopping.py`)."""

ENDING = "its engines were told to end"
"""How the cause goes on while they are stopped: one that still runs may be about to end."""


@asynccontextmanager
async def sole_flow(model: str, flow_run_id: str, journal: Journal) -> AsyncIterator[None]:
    """Be the only flow that works on a model name, and start from a clean state.

    What killed flows left behind is cleaned up first: of this model, and of any other model that
    nobody works on, for it may hold the memory that this one needs.
    """
    lock = ledger().locks.holding(
        model,
        wait_seconds=settings().lock_wait_seconds,
        note=f"flow run {flow_run_id}",
        on_wait=lambda other: journal.tell(f"waits: {other}"),
    )
    async with hold_lock(lock):
        await run_uninterrupted(_recover_all, model, journal)
        yield


def ending_of(row: ReleaseRow) -> Ending:
    """How a release is ended, as far as its record tells."""
    if row.release is None:
        return ending(StoppingSpec(), None)
    return ending(row.release.spec.stopping, row.release.plan)


def end_release(row: ReleaseRow, to: ReleaseState, cause: str) -> None:
    """Stop what a release runs, then free what it holds and close it in one step.

    Whoever waits for its start, if reconciling has started it again just now, waits no longer.
    """
    served = row.state in SERVING or row.state == ReleaseState.STOPPING
    grace = ending_of(row).grace_seconds if served else ABORT_SECONDS
    stop_all(row.workloads, grace)
    ledger().releases.end(row.id, to, cause)
    with suppress(Failure):  # a lease that is not given back runs out
        ledger().locks.drop(lease_of(row.id))


def abandon(release: str) -> bool:
    """Undo of a launch: stop whatever a release that never was ready has started.

    It is given up first, so that it cannot take over any more; one that has taken over stays.

    Returns:
        Whether it runs nothing any more; False when it has taken over.
    """
    if not ledger().releases.give_up(release, Cause.INTERRUPTED):
        return False
    stop_all(ledger().releases.get(release).workloads, ABORT_SECONDS)
    return True


def free_claims(release: str, old: ReleaseRow | None) -> None:
    """Undo of a claim; a release that had to make room gets its own back.

    What runs, or could not be stopped, keeps its claims.
    """
    row = ledger().releases.get(release)
    if row.state in SERVING:
        return
    if row.workloads:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{release} may still run and keeps its claims")
    ledger().claims.hand_back(release, *claims_of(old))


def replaceable(old: ReleaseRow | None) -> str:
    """The release that may be stopped first: only one that could be started again."""
    return old.id if old and old.release and old.release.plan else ""


def successor_of(row: ReleaseRow) -> str:
    """The release for which one stops; empty where it is stopped for none."""
    if row.state != ReleaseState.STOPPING or not row.cause.startswith(SUPERSEDED):
        return ""
    return row.cause.removeprefix(SUPERSEDED).split()[0].strip(",;")


def made_room(row: ReleaseRow) -> ReleaseRow | None:
    """The release whose claims a stop-first successor may have taken: it runs, or is to come back.

    Nobody else may take its place meanwhile.
    """
    own = ledger().releases
    stopping = (one for one in own.unfinished() if successor_of(one) == row.id)
    return own.running(row.model) or next(stopping, None)


def took_over(release: str) -> bool:
    """Whether a release ever served; what has become of it since brings nothing back."""
    made = ledger().releases.transitions(release)
    return any(one.after == ReleaseState.RUNNING for one in made)


def must_be_clean(model: str) -> None:
    """Nothing of a model may be left behind where nobody could look.

    Raises:
        Failure: `RUNTIME_UNAVAILABLE`, with what may still run and keeps its claims.
    """
    left = [row for row in _left_behind() if row.model == model]
    places = {f"{one.name} on {one.host}" for row in left for one in row.workloads}
    if left:
        names = ", ".join(sorted(places) or [row.id for row in left])
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{names} could not be cleaned up")


def abandoned(model: str) -> list[ReleaseRow]:
    """Releases that a flow which is gone left unfinished, or not wholly undone.

    Of other models only those that a deploy of this one would end: not what is to come back, nor
    what holds the place of that.
    """
    left = [row for row in _left_behind() if not ledger().locks.is_held(row.model)]
    back = [row for row in left if row.model != model and _comes_back(row)]
    stay = {row.id for row in back} | {successor_of(row) for row in back}
    return [row for row in left if row.id not in stay]


def recover_others(model: str, journal: Journal) -> None:
    """Clean up what killed flows left behind, of every model that nobody works on but this one.

    A release that made room for one which never came is left to reconciling: it serves again, and
    keeps its place until then. Ending it would be the end of its model.
    """
    for row in _left_behind():
        if row.model == model or _comes_back(row):
            continue
        with suppress(LockHeld), ledger().locks.holding(row.model, wait_seconds=0):
            try:
                if summary := recover(ledger().releases.get(row.id)):
                    journal.tell(summary)
            except Failure as failure:
                journal.tell(f"could not clean up after {row.id}: {failure}")


def recover(row: ReleaseRow) -> str:
    """Finish or undo what a flow that is gone has left; the model's lock is held by the caller.

    Returns:
        What was done; empty when there was nothing to do.
    """
    if row.state == ReleaseState.STOPPING:
        superseded = row.cause.startswith(SUPERSEDED)
        end_release(row, ReleaseState.SUPERSEDED if superseded else ReleaseState.STOPPED, row.cause)
    elif row.state in UNFINISHED or row.state == ReleaseState.ERROR:
        if not abandon(row.id):
            return ""
        ledger().claims.hand_back(row.id, *claims_of(made_room(row)))
    else:
        return ""
    return f"cleaned up after {row.id}, whose flow was interrupted while it was {row.state}"


def _recover_all(model: str, journal: Journal) -> None:
    for row in _left_behind():
        if row.model == model:
            _recover_if_reached(row, journal)
    recover_others(model, journal)


def _recover_if_reached(row: ReleaseRow, journal: Journal) -> None:
    """What a lost host holds stays written down and claimed; it does not keep the model away."""
    try:
        if summary := recover(row):
            journal.tell(summary)
    except Failure as failure:
        if failure.cause is not Cause.RUNTIME_UNAVAILABLE:
            raise
        journal.tell(f"could not clean up after {row.id}: {failure}")


def _left_behind() -> list[ReleaseRow]:
    """Releases that are not finished, or not wholly undone; their flows may be at work."""
    return [*ledger().releases.unfinished(), *ledger().releases.not_undone()]


def _comes_back(row: ReleaseRow) -> bool:
    successor = successor_of(row)
    return bool(successor) and not took_over(successor)
