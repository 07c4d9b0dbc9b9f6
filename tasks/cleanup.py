"""Clean up what killed flows left behind: finish it or undo it."""

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
    """Clean up what killed flows left behind, of a model whose lock is held and of all others."""
    for row in _left_behind():
        if row.model != model:
            continue
        try:
            if summary := recover(row):
                tell(summary)
        except Failure as failure:
            # What a lost host holds stays claimed; it does not keep the model away.
            if failure.cause is not Cause.RUNTIME_UNAVAILABLE:
                raise
            tell(f"could not clean up after {row.id}: {failure}")
    recover_others(model)


def recover_others(model: str) -> None:
    """Clean up what killed flows left behind, of every other model that nobody works on.

    A release that stopped for a successor which never served is left to reconciling, which starts
    it again. Ending it here would end its model.
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
    """Finish or undo what a killed flow left of a release; what was done, empty for nothing.

    The caller holds the model's lock.
    """
    if row.state == ReleaseState.STOPPING:
        purposes = {SUPERSEDED: ReleaseState.SUPERSEDED, ASLEEP: ReleaseState.ASLEEP}
        found = (to for begins, to in purposes.items() if row.cause.startswith(begins))
        end_release(row, next(found, ReleaseState.STOPPED), row.cause)
    elif row.state == ReleaseState.WAKING:
        sleep_on(row.id, "its flow was interrupted while it woke")
    elif row.state in UNFINISHED or row.state == ReleaseState.ERROR:
        if not abandon(row.id):
            return ""
        ledger().claims.hand_back(row.id, *claims_of(made_room(row)))
    else:
        return ""
    if row.state == ReleaseState.ERROR:
        return f"cleaned up after {row.id}, which had failed and could not be undone then"
    return f"cleaned up after {row.id}, whose flow was interrupted while it was {row.state}"


def made_room(row: ReleaseRow) -> ReleaseRow | None:
    """The release whose claims a stop-first successor may have taken: it runs, or is to come back.

    Nobody else may take its place meanwhile.
    """
    own = ledger().releases
    stopping = (one for one in own.unfinished() if successor_of(one) == row.id)
    return own.running(row.model) or next(stopping, None)


def took_over(release: str) -> bool:
    """Whether a release ever served, whatever became of it since."""
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
    """Releases that a killed flow left unfinished, or not wholly undone.

    Of other models only those that a deploy of this one would end: neither a release that will be
    restored, nor the successor in its place.
    """
    left = [row for row in _left_behind() if not ledger().locks.is_held(row.model)]
    back = [row for row in left if row.model != model and _comes_back(row)]
    stay = {row.id for row in back} | {successor_of(row) for row in back}
    return [row for row in left if row.id not in stay]


def _left_behind() -> list[ReleaseRow]:
    """Releases that are not finished, or not wholly undone; their flows may be at work."""
    return [*ledger().releases.unfinished(), *ledger().releases.not_undone()]


def _comes_back(row: ReleaseRow) -> bool:
    successor = successor_of(row)
    return bool(successor) and not took_over(successor)
