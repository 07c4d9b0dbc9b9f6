"""What releases have done, counted from the transitions and records that the ledger has.

Neither changes once it is written, so each is counted once and never read again.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping
from enum import StrEnum
from math import inf

from moorage.common.values import Value
from moorage.releases.states import SERVING, UNFINISHED, ReleaseState, Transition
from moorage.spec.one_shot import is_one_shot

BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, inf)
"""Upper bounds in seconds: some phases only decide, others download and load a large model."""

WAKE = "wake"
"""The phase in which a release that sleeps is started again; no deploy has it."""


class Event(StrEnum):
    """What happens to a model."""

    DEPLOYED = "deployed"  # a new release of it serves
    FAILED = "failed"  # a new release of it never served
    LOST = "lost"  # its release served, and was given up
    SLEPT = "slept"
    WOKEN = "woken"


_S = ReleaseState
_BEGUN = UNFINISHED - {_S.STOPPING, _S.WAKING}
_SERVED = (*SERVING, _S.STOPPING, _S.ASLEEP, _S.WAKING)

EVENTS: Mapping[tuple[ReleaseState, ReleaseState], Event] = {
    (_S.STARTING, _S.RUNNING): Event.DEPLOYED,
    **{(state, _S.ERROR): Event.FAILED for state in _BEGUN},
    **{(state, _S.ERROR): Event.LOST for state in _SERVED},
    (_S.STOPPING, _S.ASLEEP): Event.SLEPT,
    (_S.WAKING, _S.RUNNING): Event.WOKEN,
}
"""The transitions that are events; all others are steps on the way, or what a person wanted."""

RECORDED = frozenset({Event.DEPLOYED, Event.FAILED})
"""Events with which the record of a release is written, or soon after."""


class Outcome(Value):
    """The part of a release's record that is counted.

    Attributes:
        phases: Each step of the deploy with its seconds.
        downtime_seconds: How long the name had no server while it was replaced; 0 = never.
        cause: Why it failed; empty = it did not.
        refusals: How many hosts were refused, by reason.
    """

    model: str
    phases: tuple[tuple[str, float], ...] = ()
    downtime_seconds: float = 0.0
    cause: str = ""
    refusals: dict[str, int] = {}


class Durations:
    """How long something took, by bucket."""

    def __init__(self) -> None:
        self.sum = 0.0
        self._counts = [0] * len(BUCKETS)

    def add(self, seconds: float) -> None:
        """Count one more."""
        self.sum += seconds
        self._counts[bisect_left(BUCKETS, seconds)] += 1

    @property
    def cumulative(self) -> tuple[int, ...]:
        """How many took at most as long as each of `BUCKETS` says."""
        return tuple(sum(self._counts[: at + 1]) for at in range(len(BUCKETS)))


class Activity:
    """Counts that only grow.

    Attributes:
        events: By model and event; a model of `moorage run` is in none.
        downtime: Seconds by model.
        phases: By name of the phase.
        causes: Failed releases by cause.
        refusals: Refused hosts by reason.
    """

    def __init__(self) -> None:
        self.events = Counter[tuple[str, Event]]()
        self.downtime = defaultdict[str, float](float)
        self.phases = defaultdict[str, Durations](Durations)
        self.causes = Counter[str]()
        self.refusals = Counter[str]()
        self._waking: dict[str, Transition] = {}

    def add_transition(self, one: Transition) -> Event | None:
        """Count a transition; each in the order in which it happened.

        Returns:
            The event that it is, if it is one.
        """
        if one.after == ReleaseState.WAKING:
            self._waking[one.release] = one
        begun = self._waking.pop(one.release, None) if one.before == ReleaseState.WAKING else None
        event = EVENTS.get((one.before, one.after))
        if event == Event.WOKEN and begun:
            self.phases[WAKE].add((one.at - begun.at).total_seconds())
        if not is_one_shot(one.model):
            # A rate shows an event only where its series began before it, with 0.
            for other in Event:
                self.events[one.model, other] += other == event
        return event

    def add_outcome(self, one: Outcome) -> None:
        """Count a record."""
        for phase, seconds in one.phases:
            self.phases[phase].add(seconds)
        if not is_one_shot(one.model):
            self.downtime[one.model] += one.downtime_seconds
        self.causes.update([one.cause] * bool(one.cause))
        self.refusals.update(one.refusals)
