"""The way of a release through its states: when, why, by whom, and how long it stayed in each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from moorage.common.values import Value
from moorage.releases.states import ReleaseState


class Transition(Value):
    """One change of state, as the ledger logged it.

    Attributes:
        release: Which release.
        model: Name of its model.
        sequence: Its number among the changes of this release, from 1.
        before: The state that it left.
        after: The state that it is in from then on.
        at: When, UTC.
        cause: Why; empty where the states say it.
        flow_run_id: Prefect flow run that did it; empty when none did, or an older moorage that
            did not log it.
        requested_by: Who asked for that, in one line; empty as above.
        hosts: Hosts on which the release held something then; only known while it is made.
    """

    release: str
    model: str
    sequence: int
    before: ReleaseState
    after: ReleaseState
    at: datetime
    cause: str = ""
    flow_run_id: str = ""
    requested_by: str = ""
    hosts: tuple[str, ...] = ()


class Stay(Value):
    """A state of a release, and how long it was in it.

    Attributes:
        state: The state.
        since: When it came there, UTC.
        seconds: How long it stayed; None = it is there still, or for good.
        cause: Why it came there.
        flow_run_id: What brought it there.
        requested_by: Who asked for that, in one line; empty = nobody wrote it down.
    """

    state: ReleaseState
    since: datetime
    seconds: float | None = None
    cause: str = ""
    flow_run_id: str = ""
    requested_by: str = ""


def stays(begun: datetime, by: str, transitions: Sequence[Transition]) -> tuple[Stay, ...]:
    """The states of a release in order, `pending` first.

    Args:
        begun: When the release was begun, UTC.
        by: The flow run that began it.
        transitions: All its changes of state, in order.
    """
    begin = next((one.requested_by for one in transitions if one.flow_run_id == by), "")
    came = [(ReleaseState.PENDING, begun, "", by, begin)]
    came += [
        (one.after, one.at, one.cause, one.flow_run_id, one.requested_by) for one in transitions
    ]
    ends = [one.at for one in transitions]
    return tuple(
        Stay(
            state=state,
            since=since,
            seconds=round((ends[at] - since).total_seconds(), 3) if at < len(ends) else None,
            cause=cause,
            flow_run_id=flow_run_id,
            requested_by=requested_by,
        )
        for at, (state, since, cause, flow_run_id, requested_by) in enumerate(came)
    )


def outage(transitions: Sequence[Transition], since: datetime, until: datetime) -> float:
    """How long a release that was to be stopped first has served nobody, in seconds.

    From its last `stopping`, when nobody is sent there any more, until it serves again or another
    one does in its place; 0 = it served until then.

    Args:
        transitions: All its changes of state, in order.
        since: When the one that takes its place was begun, UTC; what was before is not looked at.
        until: When another one serves, or now, UTC.
    """
    closed = [
        at
        for at, one in enumerate(transitions)
        if one.after == ReleaseState.STOPPING and one.at >= since
    ]
    if not closed:
        return 0.0
    last = closed[-1]
    again = (one.at for one in transitions[last + 1 :] if one.after == ReleaseState.RUNNING)
    return round((next(again, until) - transitions[last].at).total_seconds(), 3)
