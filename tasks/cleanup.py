"""Clean up after killed flows: finish or undo their unfinished releases, or bring them back."""

from contextlib import suppress

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from moorage.adapters.ledger.locks import LockHeld
from moorage.adapters.prefect.events import emit_release_event
from moorage.common.failures import OUT_OF_REACH, Cause, Failure
from moorage.operations.reconcile.actions import Action, ActionKind
from moorage.releases.release import plan_of
from moorage.releases.release_row import ASLEEP, SUPERSEDED, ReleaseRow, claims_of, successor_of
from moorage.releases.states import DEPLOYED, UNFINISHED, ReleaseState
from moorage.spec import RestartSpec
from tasks.context import ledger
from tasks.journal import tell
from tasks.probe import probe
from tasks.replace import abandon, restore_release
from tasks.restart import count_attempt
from tasks.restore_image import restore_image
from tasks.start_lease import START_LEASE_SECONDS, lease_accelerators
from tasks.stopping import add_outcome, end_release, sleep_on


def recover_all(model: str, *, retires: bool = False, replaces: bool = False) -> None:
    """Clean up after killed flows of a model, whose lock the caller holds, and of other models.

    A release that stopped for a successor which never served is started again: otherwise nothing
    would serve the model if the caller fails. It ends if its model is to be retired (`retires`), or
    if it cannot be started and the caller `replaces` it. Raises failures of the cleanup, and
    `ACCELERATOR_STARTING` when it waits too long for another start.
    """
    for row in _left_behind():
        if row.model != model:
            continue
        restores = not retires and _can_come_back(row)
        try:
            if summary := _restore(row, or_end=replaces) if restores else recover(row):
                tell(summary)
        except Failure as failure:
            # Workloads on a lost host keep their claims, but do not block the model.
            waits = restores and not replaces and failure.cause is not Cause.ACCELERATOR_STARTING
            if not waits and failure.cause not in OUT_OF_REACH:
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


def bring_back(action: Action, row: ReleaseRow) -> str:
    """Start a release again that stopped for a successor whose flow was killed, and count that."""
    # A pull may take longer than a start is allowed to. What fails here fails again in its start,
    # without which other replicas may serve.
    with suppress(Failure):
        restore_image(row.release, plan_of(row))
    with lease_accelerators(row), count_attempt(row, action.reason):
        restore_release(row)
    emit_release_event("restarted", row, action.reason)
    return "it serves again"


def recover(row: ReleaseRow) -> str:
    """Finish or undo a release of a killed flow; returns a summary, empty if nothing was done.

    The caller holds the model's lock.
    """
    if row.state == ReleaseState.STOPPING:
        end_release(row, *_purpose(row))
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


def _purpose(row: ReleaseRow) -> tuple[ReleaseState, str]:
    """The state in which a release that stops ends, and its cause."""
    if _was_stopped_in_vain(row):
        failure = ledger().repairs.of(row.id).failure
        return ReleaseState.ERROR, add_outcome(f"{successor_of(row)} never served", failure)
    purposes = {SUPERSEDED: ReleaseState.SUPERSEDED, ASLEEP: ReleaseState.ASLEEP}
    found = (to for begins, to in purposes.items() if row.cause.startswith(begins))
    return next(found, ReleaseState.STOPPED), row.cause


def _killed(row: ReleaseRow) -> str:
    return f"the process of its flow was gone while it was {row.state}"


def made_room(row: ReleaseRow) -> ReleaseRow | None:
    """The release whose claims a successor may have taken: it runs, will be restored, or sleeps.

    The caller hands its claims back at once, so that no other release takes its place.
    """
    own = ledger().releases
    stopping = (one for one in own.unfinished() if successor_of(one) == row.id)
    return own.running(row.model) or next(stopping, None) or own.asleep(row.model)


def took_over(release: str) -> bool:
    """Whether a release ever served, in whatever state it is now."""
    made = ledger().releases.transitions(release)
    return any(one.after == ReleaseState.RUNNING for one in made)


def must_be_clean(model: str) -> None:
    """Raise `RUNTIME_UNAVAILABLE`, naming what may still run, if a model is not cleaned up."""
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


def _is_starting(error: BaseException) -> bool:
    return isinstance(error, Failure) and error.cause is Cause.ACCELERATOR_STARTING


def _can_come_back(row: ReleaseRow) -> bool:
    """Whether nothing serves in its place, and some start may succeed, as reconciling sees it."""
    spec = row.release.spec.restart if row.release else RestartSpec()
    record = ledger().repairs.of(row.id)
    hopeless = record.attempts >= spec.attempts and record.well_since is None
    return not hopeless and _was_stopped_in_vain(row)


def _was_stopped_in_vain(row: ReleaseRow) -> bool:
    """Whether its successor never served, and no other release has its name by now."""
    if not _comes_back(row):
        return False
    others = ledger().releases.in_states(DEPLOYED | {ReleaseState.WAKING})
    return all(one.model != row.model for one in others)


def _restore(row: ReleaseRow, *, or_end: bool) -> str:
    """Start a release again that stopped for another, or, with `or_end`, end it if that fails."""
    reason = f"it stopped for {successor_of(row)}, whose flow is gone"
    action = Action(kind=ActionKind.BRING_BACK, reason=reason)
    # The killed flow may have locked the accelerators from another machine, for a while still.
    once_free = Retrying(
        retry=retry_if_exception(_is_starting),
        stop=stop_after_delay(START_LEASE_SECONDS),
        wait=wait_fixed(1),
        reraise=True,
    )
    try:
        once_free(bring_back, action, row)
    except Failure as failure:
        if _is_starting(failure) or not or_end:
            raise
        tell(f"{row.id} cannot be started again: {failure}")
        return recover(ledger().releases.get(row.id))
    # Once it answers, it gives back the lease of its accelerators; no reconcile may ever run.
    probe(action, ledger().releases.get(row.id))
    return f"{row.id} is started again: {reason}"
