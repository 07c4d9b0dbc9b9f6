"""Counts of releases' activity, from the ledger's transitions and records.

Transitions and records never change once written, so each is read and counted once.
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
"""The phase in which a sleeping release wakes; not a phase of a deploy."""


class Event(StrEnum):
    """Events of a model."""

    DEPLOYED = "deployed"  # a new release serves
    FAILED = "failed"  # a new release failed before it served
    LOST = "lost"  # a release that had served was given up
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
"""Transitions that are events; the others are intermediate steps, or requested by a person."""

RECORDED = frozenset({Event.DEPLOYED, Event.FAILED})
"""Events at which, or soon after which, the record of a release is written."""


class Outcome(Value):
    """The counted part of a release's record.

    Attributes:
        phases: Each step of the deploy with its seconds.
        downtime_seconds: Seconds without a serving release during the replacement; 0 = none.
        cause: Cause of its failure; empty = it did not fail.
        refusals: Number of refused hosts, by reason.
    """

    model: str
    phases: tuple[tuple[str, float], ...] = ()
    downtime_seconds: float = 0.0
    cause: str = ""
    refusals: dict[str, int] = {}


class Durations:
    """Histogram of durations, by bucket."""

    def __init__(self) -> None:
        self.sum = 0.0
        self._counts = [0] * len(BUCKETS)

    def add(self, seconds: float) -> None:
        """Count one more duration."""
        self.sum += seconds
        self._counts[bisect_left(BUCKETS, seconds)] += 1

    @property
    def cumulative(self) -> tuple[int, ...]:
        """The number of durations up to each bound in `BUCKETS`."""
        return tuple(sum(self._counts[: at + 1]) for at in range(len(BUCKETS)))


class Activity:
    """Counts that only grow.

    Attributes:
        events: Events by model and kind, without models of `moorage run`.
        downtime: Seconds by model, without models of `moorage run`.
        phases: Durations by phase.
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
        """Count a transition; the caller passes them in order of time.

        Returns:
            Its event; None if it is not an event.
        """
        if one.after == ReleaseState.WAKING:
            self._waking[one.release] = one
        begun = self._waking.pop(one.release, None) if one.before == ReleaseState.WAKING else None
        event = EVENTS.get((one.before, one.after))
        if event == Event.WOKEN and begun:
            self.phases[WAKE].add((one.at - begun.at).total_seconds())
        if not is_one_shot(one.model):
            # Start all series at 0: Prometheus's rate() misses an event that begins its series.
            for other in Event:
                self.events[one.model, other] += other == event
        return event

    def add_outcome(self, one: Outcome) -> None:
        """Count the outcome of a release."""
        for phase, seconds in one.phases:
            self.phases[phase].add(seconds)
        if not is_one_shot(one.model):
            self.downtime[one.model] += one.downtime_seconds
        self.causes.update([one.cause] * bool(one.cause))
        self.refusals.update(one.refusals)
