"""The states of a release, the table of the moves between them, and the moves that it made."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from moorage.common.values import Value


class ReleaseState(StrEnum):
    """States of a release."""

    PENDING = "pending"
    """Begun: it has an id."""

    ANALYZING = "analyzing"
    """Its model is being resolved and read."""

    SCHEDULED = "scheduled"
    """Its claims are committed."""

    DOWNLOADING = "downloading"
    """Its image is being pulled, and its weights staged."""

    STARTING = "starting"
    """Its workloads are being started and verified."""

    RUNNING = "running"
    """It answered, and serves the name."""

    UNREACHABLE = "unreachable"
    """It serves the name, but nobody can see whether it still runs."""

    STOPPING = "stopping"
    """Nobody is sent to it any more; its requests may end."""

    STOPPED = "stopped"
    """Retired."""

    SUPERSEDED = "superseded"
    """Its successor serves."""

    ERROR = "error"
    """Failed or interrupted."""


class Edge(NamedTuple):
    """A move that is allowed, and when it is made."""

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
)
"""Every move there is. The ledger's database holds the same pairs and allows nothing else."""

TRANSITIONS: dict[ReleaseState, frozenset[ReleaseState]] = {
    state: frozenset(edge.after for edge in EDGES if edge.before == state) for state in ReleaseState
}
"""Where each state may lead."""

FINAL = frozenset(state for state, after in TRANSITIONS.items() if not after)
"""States that lead nowhere."""

SERVING = frozenset({ReleaseState.RUNNING, ReleaseState.UNREACHABLE})
"""States in which a release holds the name of its model; one release at a time is in them."""

UNFINISHED = frozenset(ReleaseState) - FINAL - SERVING
"""States in which only a living flow may leave a release."""


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
        requested_by: The requester in one line; empty as above.
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
