"""The states of a release, the allowed transitions, and a release's logged transitions."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

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


class Edge(NamedTuple):
    """An allowed transition, and when it happens."""

    before: ReleaseState
    after: ReleaseState
    when: str


_S = ReleaseState

EDGES: tuple[Edge, ...] = (
    Edge(_S.PENDING, _S.ANALYZING, "its flow looks at the model"),
    Edge(_S.PENDING, _S.SCHEDULED, "its flow knows the model already: it tries another port"),
    Edge(_S.PENDING, _S.ERROR, "it failed, or its flow is gone"),
    Edge(_S.ANALYZING, _S.SCHEDULED, "its claims are committed"),
    Edge(_S.ANALYZING, _S.ERROR, "it failed, or its flow is gone"),
    Edge(_S.SCHEDULED, _S.DOWNLOADING, "image and weights are fetched"),
    Edge(_S.SCHEDULED, _S.STARTING, "nothing is fetched, or schema 0003 had no state for it"),
    Edge(_S.SCHEDULED, _S.ERROR, "it failed, or its flow is gone"),
    Edge(_S.DOWNLOADING, _S.STARTING, "everything it needs is there"),
    Edge(_S.DOWNLOADING, _S.ERROR, "it failed, or its flow is gone"),
    Edge(_S.STARTING, _S.RUNNING, "it answered"),
    Edge(_S.STARTING, _S.ERROR, "it failed, or its flow is gone"),
    Edge(_S.RUNNING, _S.UNREACHABLE, "a host or a runtime of it does not answer"),
    Edge(_S.RUNNING, _S.STOPPING, "it is retired, or its successor needs its place or took over"),
    Edge(_S.RUNNING, _S.ERROR, "it was found dead, and is not started again"),
    Edge(_S.UNREACHABLE, _S.RUNNING, "it is seen again"),
    Edge(_S.UNREACHABLE, _S.STOPPING, "it is retired, or its successor took over elsewhere"),
    Edge(_S.UNREACHABLE, _S.ERROR, "its host is given up"),
    Edge(_S.STOPPING, _S.STOPPED, "what was retired has ended"),
    Edge(_S.STOPPING, _S.SUPERSEDED, "what was replaced has ended"),
    Edge(
        _S.STOPPING,
        _S.RUNNING,
        "its successor failed and it was started again; or the stop was cancelled",
    ),
    Edge(_S.STOPPING, _S.ERROR, "it can neither be ended nor serve again"),
    Edge(_S.STOPPING, _S.ASLEEP, "nobody asked it for a while, or a person put it to sleep"),
    Edge(_S.ASLEEP, _S.WAKING, "somebody asks it, and its claims are committed again"),
    Edge(_S.ASLEEP, _S.STOPPED, "it is retired"),
    Edge(_S.ASLEEP, _S.SUPERSEDED, "its successor serves"),
    Edge(_S.ASLEEP, _S.ERROR, "it can never wake again"),
    Edge(_S.WAKING, _S.RUNNING, "it answered"),
    Edge(_S.WAKING, _S.ASLEEP, "it did not answer, or its flow is gone"),
    Edge(_S.WAKING, _S.ERROR, "its host is given up"),
)
"""All transitions. The ledger's database has the same pairs and refuses others."""

TRANSITIONS: dict[ReleaseState, frozenset[ReleaseState]] = {
    state: frozenset(edge.after for edge in EDGES if edge.before == state) for state in ReleaseState
}
"""The states that may follow each state."""

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
        transitions: All its changes of state, in order.
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
