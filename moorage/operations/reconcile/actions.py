"""The actions of reconciling, each with its reason, and their outcomes."""

from __future__ import annotations

from enum import StrEnum

from moorage.common.values import Value
from moorage.engines.launch import Workload
from moorage.inventory.fleet import Avoided
from moorage.operations.reconcile.cluster_state import Found, Place
from moorage.releases.states import ReleaseState


class Deed(StrEnum):
    """Kinds of actions."""

    UNDO = "undo"
    """Undo what a flow that is gone has begun."""

    FINISH = "finish"
    """Finish a stop that a flow which is gone has begun."""

    BRING_BACK = "bring back"
    """Start a release again that stopped for a successor which never came to be."""

    MARK_UNREACHABLE = "mark unreachable"
    """Its host cannot be looked at."""

    MARK_SEEN = "mark seen"
    """Its host can be looked at again."""

    ADOPT = "adopt"
    """Write down what runs as planned and is not in the ledger."""

    RESTART = "restart"
    """Start it again where it was, exactly as it was planned."""

    REPLACE = "replace"
    """Deploy its model anew, elsewhere."""

    GIVE_UP = "give up"
    """Close it and free what it holds."""

    PROBE = "probe"
    """Find out whether it answers."""

    FORGET = "forget"
    """Forget its failures, for it has been well for long."""

    REMOVE = "remove"
    """Remove what nobody owns."""

    WAIT = "wait"
    """Do nothing yet."""


QUIET = frozenset({Deed.PROBE, Deed.FORGET, Deed.WAIT})
"""What changes nothing that runs, is claimed, or is in a state."""


class Action(Value):
    """One thing to do.

    Attributes:
        deed: What.
        model: Model concerned; its lock is held meanwhile.
        release: Release concerned.
        state: State of the release on which this was decided; in another one it is not done.
        reason: Why.
        host: Host concerned; empty = several or none.
        adopted: What is written down.
        dead: What of the release has died.
        avoid: Where it must not be placed again.
        place: Where something is removed.
        found: What is removed.
    """

    deed: Deed
    model: str = ""
    release: str = ""
    state: ReleaseState | None = None
    reason: str
    host: str = ""
    adopted: tuple[Workload, ...] = ()
    dead: tuple[str, ...] = ()
    avoid: tuple[Avoided, ...] = ()
    place: Place | None = None
    found: Found | None = None

    @property
    def about(self) -> str:
        """What it is about, for people."""
        return self.release or (self.found.name if self.found else self.host)


class Outcome(Value):
    """What became of an action.

    Attributes:
        action: The action.
        done: Whether it was done; what was decided otherwise meanwhile was not.
        summary: What came of it.
    """

    action: Action
    done: bool = True
    summary: str = ""
