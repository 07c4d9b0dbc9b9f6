"""The actions of reconciling, each with its reason, and their outcomes."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

from moorage.common.failures import Cause
from moorage.common.values import Value
from moorage.engines.workload import Workload
from moorage.inventory.fleet import Avoided
from moorage.operations.reconcile.observed_workload import ObservedWorkload, Place
from moorage.releases.states import ReleaseState


class ActionKind(StrEnum):
    """Kinds of actions."""

    UNDO = "undo"  # an unfinished release of a dead flow
    FINISH = "finish"  # a stop that a dead flow began
    BRING_BACK = "bring back"  # a release that stopped for a successor that never served
    MARK_UNREACHABLE = "mark unreachable"  # its host does not answer
    MARK_REACHABLE = "mark seen"  # its host answers again
    ADOPT = "adopt"  # add to the ledger workloads that run as planned
    RESTART = "restart"  # dead workloads, in their place and exactly as planned
    REPLACE = "replace"  # deploy its model again on other hosts or accelerators
    GIVE_UP = "give up"  # close it and free its claims; a sleeper keeps its state and ports
    PROBE = "probe"  # check whether it answers
    FORGET = "forget"  # its failures, since it has been healthy for long
    REMOVE = "remove"  # a workload without an owner
    WAIT = "wait"  # do nothing yet


QUIET = frozenset({ActionKind.PROBE, ActionKind.FORGET, ActionKind.WAIT})
"""Kinds that change no workload, claim or state."""


class Action(Value):
    """One action for a release, or for a stray workload.

    Attributes:
        model: Model whose lock is held during the action.
        state: State of the release in which alone the action is carried out.
        host: Host concerned; empty = several or none.
        stray: Workload to remove from its `place`.
        spares: Whether a replica of the release serves, so that no repair may stop it first.
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
    spares: bool = False

    @property
    def about(self) -> str:
        """Name of the release, stray workload or host, for people."""
        return self.release or (self.stray.name if self.stray else self.host)


class ActionOutcome(Value):
    """The result of an action; `done` is False if it failed or its decision no longer held.

    Attributes:
        exit_code: Exit code of the failure's class; 0 = no failure.
        lacks_image: Replicas whose restart must wait until their image is pulled.
    """

    action: Action
    done: bool = True
    summary: str = ""
    cause: Cause | None = None
    exit_code: int = 0
    lacks_image: tuple[int, ...] = ()

    @property
    def needs_deploy(self) -> bool:
        """Whether a restart found its model or a GPU gone from the host: only a deploy helps."""
        return self.action.kind == ActionKind.RESTART and self.cause is Cause.PLACE_GONE


WAITS = frozenset({Cause.ACCELERATOR_STARTING, Cause.DEPLOY_IN_PROGRESS})
"""Causes that pass by themselves, so that a repair which meets them has not failed."""


def exit_code_of(outcomes: Iterable[ActionOutcome]) -> int:
    """The exit code of the first failure; 0 = none.

    A restart without its files is none: a deploy takes its place, which has its own outcome.
    """
    return next((one.exit_code for one in outcomes if one.exit_code and not one.needs_deploy), 0)


FIRST_SECONDS, LONGEST_SECONDS = 10.0, 300.0


def delay_seconds(attempts: int) -> float:
    """The wait after this number of starts in a row: 0 s, 10 s, 20 s, 40 s, ... 300 s."""
    if attempts < 1:
        return 0.0
    # Bound the exponent, since a release may fail for months.
    delay: float = FIRST_SECONDS * 2.0 ** min(attempts - 1, 16)
    return min(delay, LONGEST_SECONDS)


def not_before(now: datetime, attempts: int) -> datetime:
    """The earliest time of the next start."""
    return now + timedelta(seconds=delay_seconds(attempts))
