"""The actions of reconciling, each with its reason, and their outcomes."""

from __future__ import annotations

from enum import StrEnum

from moorage.common.values import Value
from moorage.engines.launch import Workload
from moorage.inventory.fleet import Avoided
from moorage.operations.reconcile.cluster_state import ObservedWorkload, Place
from moorage.releases.states import ReleaseState


class ActionKind(StrEnum):
    """Kinds of actions."""

    UNDO = "undo"
    """Undo what a dead flow has begun."""

    FINISH = "finish"
    """Finish a stop that a dead flow has begun."""

    BRING_BACK = "bring back"
    """Start a release again that stopped for a successor which never came to be."""

    MARK_UNREACHABLE = "mark unreachable"
    """Its host cannot be observed."""

    MARK_SEEN = "mark seen"
    """Its host can be observed."""

    ADOPT = "adopt"
    """Add to the ledger what runs as planned and is not in it."""

    RESTART = "restart"
    """Start it again where it was, exactly as it was planned."""

    REPLACE = "replace"
    """Deploy its model anew, elsewhere."""

    GIVE_UP = "give up"
    """Close it and free what it holds."""

    PROBE = "probe"
    """Probe whether it answers."""

    FORGET = "forget"
    """Forget its failures, because it has been healthy for long."""

    REMOVE = "remove"
    """Remove what nobody owns."""

    WAIT = "wait"
    """Do nothing yet."""


QUIET = frozenset({ActionKind.PROBE, ActionKind.FORGET, ActionKind.WAIT})
"""Kinds that change no workload, claim or state."""


class Action(Value):
    """One thing to do.

    Attributes:
        kind: What is done.
        model: Model concerned; its lock is held meanwhile.
        release: Release concerned.
        state: State of the release on which this was decided; in another one it is not done.
        reason: Why.
        host: Host concerned; empty = several or none.
        adopted: Workloads that are added to the ledger.
        dead: Its dead workloads.
        avoid: Where it must not be placed again.
        place: Where something is removed.
        found: The workload that is removed.
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
    found: ObservedWorkload | None = None

    @property
    def about(self) -> str:
        """What it is about, for people."""
        return self.release or (self.found.name if self.found else self.host)


class ActionOutcome(Value):
    """The result of an action.

    Attributes:
        action: The action.
        done: Whether it was done; what was decided otherwise meanwhile was not.
        summary: The result, in words.
    """

    action: Action
    done: bool = True
    summary: str = ""
