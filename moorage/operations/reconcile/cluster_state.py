"""Ledger and hosts at one moment: the input of all decisions. Moments are UTC."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from moorage.common.values import Value
from moorage.engines.launch import planned_workload
from moorage.engines.workload import Workload
from moorage.inventory.fleet import Avoided
from moorage.operations.reconcile.observed_workload import ObservedWorkload, Place, place_of
from moorage.placement.placement import CPU
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import SERVING, ReleaseState
from moorage.spec import Deadlines, RestartSpec


class Observation(Value):
    """The workloads of one place, or since when and why it does not answer."""

    place: Place
    unreachable_since: datetime | None = None
    detail: str = ""
    workloads: tuple[ObservedWorkload, ...] = ()


class RepairRecord(Value):
    """The ledger's record of the repairs of a release.

    Attributes:
        attempts: Restarts since it was last healthy for `HEALTHY_SECONDS`.
        elsewhere: Replacements in that time.
        not_before: Earliest moment of the next start; None = at once.
        started_at: Moment of the latest restart; None = it has answered since.
        well_since: Since when it answers after a restart; None = it was never restarted.
        missed: Probes in a row that it did not answer.
        tokens: Tokens generated until then, by workload, as the engines' metrics count.
    """

    release: str
    attempts: int = 0
    elsewhere: int = 0
    not_before: datetime | None = None
    failure: str = ""
    started_at: datetime | None = None
    well_since: datetime | None = None
    probed_at: datetime | None = None
    missed: int = 0
    tokens: dict[str, int] = {}


class Patience(Value):
    """Waiting times in seconds.

    Attributes:
        orphan_seconds: Before a workload without an owner is removed.
        lost_seconds: Before the claims on an unreachable host are given up.
        probe_seconds: Between two probes of a release.
    """

    orphan_seconds: float = 600.0
    lost_seconds: float = 86_400.0
    probe_seconds: float = 60.0


@dataclass(frozen=True)
class ClusterState:
    """Ledger and hosts at one moment.

    The releases are unfinished, serve, or failed and still hold something; in order of creation.

    Attributes:
        hosts: Reachable hosts of the fleet: models may be placed there.
        busy: By model, who works on it.
        asleep: Names of workloads whose release sleeps; they stay.
        took_over: Successors that served once, whatever became of them since.
    """

    now: datetime
    patience: Patience = field(default_factory=Patience)
    releases: tuple[ReleaseRow, ...] = ()
    observations: tuple[Observation, ...] = ()
    records: tuple[RepairRecord, ...] = ()
    hosts: frozenset[str] = frozenset()
    busy: Mapping[str, str] = field(default_factory=dict)
    asleep: frozenset[str] = frozenset()
    took_over: frozenset[str] = frozenset()

    def record(self, release: str) -> RepairRecord:
        """The repair record of a release; a blank one where there is none."""
        return self._records.get(release) or RepairRecord(release=release)

    def observation(self, workload: Workload) -> Observation | None:
        """What the place of a workload shows; None when it was not observed."""
        return self._observations.get(place_of(workload))

    @cached_property
    def _records(self) -> dict[str, RepairRecord]:
        return {one.release: one for one in self.records}

    @cached_property
    def _observations(self) -> dict[Place, Observation]:
        return {one.place: one for one in self.observations}


MOST_MISSED = 2
"""Probes in a row that an engine may leave unanswered before it counts as dead."""


def planned_workloads(row: ReleaseRow) -> tuple[Workload, ...]:
    """What its plan starts; nothing in states in which only a part of it may have started."""
    if row.plan is None or row.state not in SERVING | {ReleaseState.STOPPING}:
        return ()
    return tuple(map(planned_workload, row.plan.containers))


@dataclass(frozen=True)
class ReleaseStatus:
    """A release in the cluster, and what follows from both."""

    cluster: ClusterState
    own: ReleaseRow

    @cached_property
    def record(self) -> RepairRecord:
        """Its repair record."""
        return self.cluster.record(self.own.id)

    @cached_property
    def planned(self) -> tuple[Workload, ...]:
        """Every workload of its plan; empty when its record cannot be read."""
        return planned_workloads(self.own)

    @property
    def restart(self) -> RestartSpec:
        """What its spec says about restarts."""
        return self.own.release.spec.restart if self.own.release else RestartSpec()

    @property
    def seats(self) -> tuple[Avoided, ...]:
        """The accelerators that it uses, by host."""
        return tuple(
            Avoided(host=seat.host, accelerators=seat.accelerators)
            for seat in (self.own.placement.seats if self.own.placement else ())
            if seat.accelerator_type != CPU and seat.accelerators
        )

    @cached_property
    def delayed_until(self) -> str:
        """Time of day before which it must not start; empty = it may start now."""
        when = self.record.not_before
        return f"{when:%H:%M:%S} UTC" if when and when > self.cluster.now else ""

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """All workloads that should run, as the ledger has them where it does."""
        listed = {one.name for one in self.own.workloads}
        missing = tuple(one for one in self.planned if one.name not in listed)
        return (*self.own.workloads, *missing)

    @cached_property
    def unreachable(self) -> tuple[Observation, ...]:
        """Its places that do not answer."""
        observed = (self.cluster.observation(one) for one in self.workloads)
        return tuple({one.place: one for one in observed if one and one.unreachable_since}.values())

    @cached_property
    def unreachable_seconds(self) -> float:
        """How long the first of them has been unreachable."""
        since = [one.unreachable_since for one in self.unreachable if one.unreachable_since]
        return (self.cluster.now - min(since)).total_seconds() if since else 0.0

    @cached_property
    def unlisted(self) -> tuple[Workload, ...]:
        """What runs as planned, but is not in the ledger, or under another identity."""
        listed = {one.name: one.identity for one in self.own.workloads}
        return tuple(
            one.model_copy(update={"identity": observed.identity})
            for one in self.workloads
            if (observed := self._observed(one))
            and observed.running
            and listed.get(one.name) != observed.identity
        )

    @cached_property
    def dead(self) -> dict[str, str]:
        """By name, the state of each workload that does not run though its place answers."""
        states = {}
        for one in self.workloads:
            place, observed = self.cluster.observation(one), self._observed(one)
            if place and not place.unreachable_since and not (observed and observed.running):
                states[one.name] = observed.state if observed else "it is gone"
        return states

    @property
    def silent(self) -> str:
        """Why it counts as dead though it runs; empty = it does not."""
        if self.record.missed >= MOST_MISSED:
            return f"it did not answer {self.record.missed} times in a row"
        release, begun = self.own.release, self.record.started_at
        deadlines = release.spec.readiness.deadlines if release else Deadlines()
        allowed = deadlines.load_seconds + deadlines.warm_up_seconds
        if begun and self.cluster.now - begun > timedelta(seconds=allowed):
            return f"it has not answered within {allowed:g} s of its start"
        return ""

    def _observed(self, workload: Workload) -> ObservedWorkload | None:
        observation = self.cluster.observation(workload)
        there = observation.workloads if observation else ()
        own = (one for one in there if one.name == workload.name and one.release == self.own.id)
        return next(own, None)
