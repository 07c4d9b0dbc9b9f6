"""The states of a release, and the one table of the moves between them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


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
    Edge(_S.RUNNING, _S.UNREACHABLE, "a host or a runtime of it cannot be asked"),
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
