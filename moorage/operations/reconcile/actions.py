"""The actions of reconciling, each with its reason, and their outcomes."""

from datetime import datetime, timedelta
from enum import StrEnum

from moorage.common.values import Value
from moorage.engines.workload import Workload
from moorage.inventory.fleet import Avoided
from moorage.operations.reconcile.observed_workload import ObservedWorkload, Place
from moorage.releases.states import ReleaseState


class ActionKind(StrEnum):
    """Kinds of actions."""

    UNDO = "undo"  # what a dead flow has begun
    FINISH = "finish"  # a stop that a dead flow has begun
    BRING_BACK = "bring back"  # what stopped for a successor that never served
    MARK_UNREACHABLE = "mark unreachable"  # its host does not answer
    MARK_REACHABLE = "mark seen"  # its host answers again
    ADOPT = "adopt"  # add to the ledger what runs as planned and is not in it
    RESTART = "restart"  # in its place, exactly as it was planned
    REPLACE = "replace"  # deploy its model again, elsewhere
    GIVE_UP = "give up"  # close it and free its claims
    PROBE = "probe"  # find out whether it answers
    FORGET = "forget"  # its failures, because it has been healthy for long
    REMOVE = "remove"  # a workload without an owner
    WAIT = "wait"  # nothing is done yet


QUIET = frozenset({ActionKind.PROBE, ActionKind.FORGET, ActionKind.WAIT})
"""Kinds that change no workload, claim or state."""


class Action(Value):
    """One thing to do.

    Attributes:
        model: Its lock is held meanwhile.
        state: The action is only carried out while the release is in this state.
        host: Host concerned; empty = several or none.
        adopted: Workloads that are added to the ledger.
        dead: Names of its dead workloads.
        stray: The workload that is removed from its `place`.
    """

    kind: ActionKind
    model: str = ""
    release: str = ""
    state: ReleaseState | None = None
    reason: str
    host: str = ""
    adopted: tuple[Workload, ...] = ()
    dead: tuple[str, ...] = ()
    avoid: tuple[Avoided, ...] = ()
    place: Place | None = None
    stray: ObservedWorkload | None = None

    @property
    def about(self) -> str:
        """What it is about, for people."""
        return self.release or (self.stray.name if self.stray else self.host)


class ActionOutcome(Value):
    """The result of an action; `done` is False where the decision no longer held."""

    action: Action
    done: bool = True
    summary: str = ""


FIRST_SECONDS, LONGEST_SECONDS = 10.0, 300.0


def delay_seconds(attempts: int) -> float:
    """How long to wait after so many starts in a row: 0 s, 10 s, 20 s, 40 s, ... 300 s."""
    if attempts < 1:
        return 0.0
    # The exponent is bounded: a release may fail for months.
    delay: float = FIRST_SECONDS * 2.0 ** min(attempts - 1, 16)
    return min(delay, LONGEST_SECONDS)


def not_before(now: datetime, attempts: int) -> datetime:
    """The earliest moment of the next start."""
    return now + timedelta(seconds=delay_seconds(attempts))
