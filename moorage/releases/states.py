"""The states of a release, the allowed transitions, and a release's logged transitions."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from itertools import pairwise

from moorage.common.values import Value


class ReleaseState(StrEnum):
    """States of a release."""

    PENDING = "pending"  # it has an id, and nothing else yet
    ANALYZING = "analyzing"  # its model is being resolved and read
    SCHEDULED = "scheduled"  # its claims are committed
    DOWNLOADING = "downloading"  # its image is being pulled, and its weights staged
    STARTING = "starting"  # its workloads are being started and verified
    RUNNING = "running"  # it answered, and serves the name
    UNREACHABLE = "unreachable"  # it serves the name, but its host or runtime does not answer
    STOPPING = "stopping"  # it gets no new requests; running requests may finish
    ASLEEP = "asleep"  # it is stopped, and a request wakes it
    WAKING = "waking"  # its workloads are being started and verified again
    STOPPED = "stopped"  # retired
    SUPERSEDED = "superseded"  # its successor serves
    ERROR = "error"  # failed or interrupted


_S = ReleaseState

TRANSITIONS: dict[ReleaseState, frozenset[ReleaseState]] = {
    # At once `scheduled`: its flow knows the model already, and tries another port.
    _S.PENDING: frozenset({_S.ANALYZING, _S.SCHEDULED, _S.ERROR}),
    _S.ANALYZING: frozenset({_S.SCHEDULED, _S.ERROR}),
    # At once `starting`: nothing is fetched, or schema 0003 had no state for it.
    _S.SCHEDULED: frozenset({_S.DOWNLOADING, _S.STARTING, _S.ERROR}),
    _S.DOWNLOADING: frozenset({_S.STARTING, _S.ERROR}),
    _S.STARTING: frozenset({_S.RUNNING, _S.ERROR}),
    # `stopping`: it is retired or sleeps, or its successor needs its place or took over.
    # `error`: it was found dead, and is not started again.
    _S.RUNNING: frozenset({_S.UNREACHABLE, _S.STOPPING, _S.ERROR}),
    # `running`: it is seen again; `error`: its host is given up.
    _S.UNREACHABLE: frozenset({_S.RUNNING, _S.STOPPING, _S.ERROR}),
    # `running`: its successor failed and it was started again; or the stop was cancelled.
    # `error`: it can neither be ended nor serve again.
    _S.STOPPING: frozenset({_S.STOPPED, _S.SUPERSEDED, _S.RUNNING, _S.ERROR, _S.ASLEEP}),
    # `error`: it can never wake again.
    _S.ASLEEP: frozenset({_S.WAKING, _S.STOPPED, _S.SUPERSEDED, _S.ERROR}),
    # `asleep`: it did not answer, or its flow is gone; `error`: its host is given up.
    _S.WAKING: frozenset({_S.RUNNING, _S.ASLEEP, _S.ERROR}),
    **dict.fromkeys((_S.STOPPED, _S.SUPERSEDED, _S.ERROR), frozenset[ReleaseState]()),
}
"""The states that may follow each state. The ledger's database refuses others, too."""

FINAL = frozenset(state for state, after in TRANSITIONS.items() if not after)
"""States without a successor."""

SERVING = frozenset({ReleaseState.RUNNING, ReleaseState.UNREACHABLE})
"""States in which a release holds the name of its model; at most one release per model."""

UNFINISHED = frozenset(ReleaseState) - FINAL - SERVING - {ReleaseState.ASLEEP}
"""Transient states: a release in one of them belongs to a flow that is still running."""

DEPLOYED = SERVING | {ReleaseState.ASLEEP}
"""States in which a model answers requests, at once or after waking."""

KEPT = SERVING | UNFINISHED | {ReleaseState.ASLEEP}
"""States in which a release needs its image and its files."""


class Transition(Value):
    """One logged change of a release's state.

    Attributes:
        sequence: Its number among the changes of this release, from 1.
        at: Time of the change, UTC.
        cause: Empty where the two states explain the change.
        flow_run_id: Empty when no flow run made the change, or an older moorage did not log it.
        requested_by: The requester in one line; empty in the same cases.
        hosts: Hosts on which the release had claims then; only known while the change is made.
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
    """A period of a release in one state, since a time (UTC), and the cause of its beginning.

    Attributes:
        seconds: Duration; None = the release is still in this state.
        requested_by: The requester in one line; empty = not recorded.
    """

    state: ReleaseState
    since: datetime
    seconds: float | None = None
    cause: str = ""
    flow_run_id: str = ""
    requested_by: str = ""


def stays(begun: datetime, by: str, transitions: Sequence[Transition]) -> tuple[Stay, ...]:
    """The states of a release in order, `pending` first.

    `by` is the flow run that began it, at `begun` (UTC); `transitions` are all its changes.
    """
    requester = next((one.requested_by for one in transitions if one.flow_run_id == by), "")
    found = [Stay(state=ReleaseState.PENDING, since=begun, flow_run_id=by, requested_by=requester)]
    for one in transitions:
        facts = one.model_dump(include={"cause", "flow_run_id", "requested_by"})
        found.append(Stay(state=one.after, since=one.at, **facts))
    ended = [
        stay.model_copy(update={"seconds": round((after.since - stay.since).total_seconds(), 3)})
        for stay, after in pairwise(found)
    ]
    return (*ended, found[-1])


def outage(transitions: Sequence[Transition], since: datetime, until: datetime) -> float:
    """Seconds in which a release that was stopped first got no requests.

    The time begins with its last `stopping` and ends when this release or its successor serves.
    0 = it served until then.

    Args:
        since: When its successor began; earlier transitions are ignored.
        until: When another release serves, or now.
    """
    closed = reopened = None
    for one in transitions:
        if one.after == ReleaseState.STOPPING and one.at >= since:
            closed, reopened = one.at, None
        elif one.after == ReleaseState.RUNNING:
            reopened = reopened or one.at
    return round(((reopened or until) - closed).total_seconds(), 3) if closed else 0.0
