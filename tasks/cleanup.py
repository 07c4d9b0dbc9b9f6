"""Clean up after killed flows: finish or undo their unfinished releases."""

from contextlib import suppress

from moorage.adapters.ledger.locks import LockHeld
from moorage.common.failures import Cause, Failure
from moorage.releases.release_row import ASLEEP, SUPERSEDED, ReleaseRow, claims_of, successor_of
from moorage.releases.states import UNFINISHED, ReleaseState
from tasks.context import ledger
from tasks.journal import tell
from tasks.replace import abandon
from tasks.stopping import end_release, sleep_on


def recover_all(model: str) -> None:
    """Clean up after killed flows of a model, whose lock the caller holds, and of other models."""
    for row in _left_behind():
        if row.model != model:
            continue
        try:
            if summary := recover(row):
                tell(summary)
        except Failure as failure:
            # Workloads on a lost host keep their claims, but do not block the model.
            if failure.cause is not Cause.RUNTIME_UNAVAILABLE:
                raise
            tell(f"could not clean up after {row.id}: {failure}")
    recover_others(model)


def recover_others(model: str) -> None:
    """Clean up after killed flows of all models but this one, except those whose lock is held.

    A release that stopped for a successor which never served is left to reconciling, which starts
    it again; ended here, its model would no longer be served.
    """
    for row in _left_behind():
        if row.model == model or _comes_back(row):
            continue
        with suppress(LockHeld), ledger().locks.holding(row.model, wait_seconds=0):
            try:
                if summary := recover(ledger().releases.get(row.id)):
                    tell(summary)
            except Failure as failure:
                tell(f"could not clean up after {row.id}: {failure}")


def recover(row: ReleaseRow) -> str:
    """Finish or undo a release of a killed flow; returns a summary, empty if nothing was done.

    The caller holds the model's lock.
    """
    if row.state == ReleaseState.STOPPING:
        purposes = {SUPERSEDED: ReleaseState.SUPERSEDED, ASLEEP: ReleaseState.ASLEEP}
        found = (to for begins, to in purposes.items() if row.cause.startswith(begins))
        end_release(row, next(found, ReleaseState.STOPPED), row.cause)
    elif row.state == ReleaseState.WAKING:
        sleep_on(row.id, _killed(row))
    elif row.state in UNFINISHED or row.state == ReleaseState.ERROR:
        if not abandon(row.id, f"{Cause.INTERRUPTED}: {_killed(row)}"):
            return ""
        ledger().claims.hand_back(row.id, *claims_of(made_room(row)))
    else:
        return ""
    if row.state == ReleaseState.ERROR:
        return f"cleaned up after {row.id}, which had failed and could not be undone then"
    return f"cleaned up after {row.id}, whose flow was interrupted while it was {row.state}"


def _killed(row: ReleaseRow) -> str:
    return f"the process of its flow was gone while it was {row.state}"


def made_room(row: ReleaseRow) -> ReleaseRow | None:
    """The release whose claims a stop-first successor may have taken: it runs or will be restored.

    The caller hands its claims back at once, so that no other release takes its place.
    """
    own = ledger().releases
    stopping = (one for one in own.unfinished() if successor_of(one) == row.id)
    return own.running(row.model) or next(stopping, None)


def took_over(release: str) -> bool:
    """Whether a release ever served, in whatever state it is now."""
    made = ledger().releases.transitions(release)
    return any(one.after == ReleaseState.RUNNING for one in made)


def must_be_clean(model: str) -> None:
    """Require that no release of a model is left to clean up, for example on an unreachable host.

    Raises:
        Failure: `RUNTIME_UNAVAILABLE`, with the workloads that may still run and keep their claims.
    """
    left = [row for row in _left_behind() if row.model == model]
    places = {f"{one.name} on {one.host}" for row in left for one in row.workloads}
    if left:
        names = ", ".join(sorted(places) or [row.id for row in left])
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{names} could not be cleaned up")


def abandoned(model: str) -> list[ReleaseRow]:
    """Releases that a killed flow left unfinished or only partly undone.

    For other models, only those that a deploy of this model would end: neither a release that
    reconciling will restore, nor the successor that took its place.
    """
    left = [row for row in _left_behind() if not ledger().locks.is_held(row.model)]
    back = [row for row in left if row.model != model and _comes_back(row)]
    stay = {row.id for row in back} | {successor_of(row) for row in back}
    return [row for row in left if row.id not in stay]


def _left_behind() -> list[ReleaseRow]:
    """Releases that are unfinished or only partly undone; their flows may still be at work."""
    return [*ledger().releases.unfinished(), *ledger().releases.not_undone()]


def _comes_back(row: ReleaseRow) -> bool:
    successor = successor_of(row)
    return bool(successor) and not took_over(successor)
