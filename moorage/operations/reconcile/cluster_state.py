"""Ledger and hosts at one moment: the input of all decisions. Times are UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from moorage.common.values import Value
from moorage.engines.launch import planned_workload
from moorage.engines.workload import Workload
from moorage.inventory.fleet import Avoided
from moorage.operations.reconcile.actions import not_before
from moorage.operations.reconcile.observed_workload import ObservedWorkload, Place, place_of
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import SERVING, ReleaseState
from moorage.spec import Deadlines, RestartSpec


class Observation(Value):
    """The workloads of one place, or the time since which, and reason why, it does not answer."""

    place: Place
    unreachable_since: datetime | None = None
    detail: str = ""
    workloads: tuple[ObservedWorkload, ...] = ()


class RepairRecord(Value):
    """The ledger's record of the repairs of a release.

    Attributes:
        attempts: Restarts since it was last healthy for `HEALTHY_SECONDS`.
        elsewhere: Replacements in that time.
        not_before: Earliest time of the next start; None = at once.
        started_at: Time of the latest restart; None = it has answered since.
        well_since: Time of the first answer after a restart; None = not restarted, or no answer.
        missed: Probes in a row that it did not answer.
        tokens: Tokens generated until the last probe, by workload, from the engines' metrics.
        busy_since: Unix times since which workloads are healthy, but answer no probe in time.
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
    busy_since: dict[str, int] = {}

    def with_silent(self, silent: Mapping[str, bool], now: int) -> RepairRecord:
        """The record after a probe that some workloads did not answer.

        Args:
            silent: By workload, whether it may only be busy. A busy one counts as such until it
                answers, whatever happens to the probes in between.
            now: Unix time.
        """
        known = self.busy_since
        busy = {name: known.get(name, now) for name in silent if silent[name] or name in known}
        return self.model_copy(update={"busy_since": busy})

    def is_patient(self, workload: str, now: int) -> bool:
        """Whether a workload that is only busy gets more time; a starting one has its own deadline.

        `now` is a Unix time.
        """
        return not self.started_at and now - self.busy_since[workload] < MOST_BUSY_SECONDS


class Patience(Value):
    """Waiting times in seconds.

    Attributes:
        orphan_seconds: Wait before a workload without an owner is removed.
        lost_seconds: Wait before the claims on an unreachable host are given up.
        probe_seconds: Wait between two probes of a release.
    """

    orphan_seconds: float = 600.0
    lost_seconds: float = 86_400.0
    probe_seconds: float = 60.0


@dataclass(frozen=True)
class ClusterState:
    """Ledger and hosts at one moment.

    The releases are unfinished, serving, failed but not wholly undone, or asleep with engines that
    run, in order of creation.

    Attributes:
        records: By release, where it has one.
        hosts: Reachable hosts of the fleet, on which models may be placed.
        avoid: Hosts and accelerators that the fleet itself avoids.
        foreign_hosts: Hosts that are left to the reconcile of another site; nothing is decided
            about releases there.
        busy: By model, the holder of its lock.
        sleepers: By model, the release that sleeps.
        took_over: Successors that once served, in whatever state now.
    """

    now: datetime
    patience: Patience = field(default_factory=Patience)
    releases: tuple[ReleaseRow, ...] = ()
    observations: tuple[Observation, ...] = ()
    records: Mapping[str, RepairRecord] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    avoid: tuple[Avoided, ...] = ()
    foreign_hosts: frozenset[str] = frozenset()
    busy: Mapping[str, str] = field(default_factory=dict)
    sleepers: Mapping[str, str] = field(default_factory=dict)
    took_over: frozenset[str] = frozenset()

    def record(self, release: str) -> RepairRecord:
        """The repair record of a release; a new one if it has none."""
        return self.records.get(release) or RepairRecord(release=release)

    def observation(self, workload: Workload) -> Observation | None:
        """The observation of a workload's place; None if the place was not observed."""
        return self._observations.get(place_of(workload))

    @cached_property
    def _observations(self) -> dict[Place, Observation]:
        return {one.place: one for one in self.observations}


CLOCKS = timedelta(seconds=60)
"""How far a host's clock may be behind."""

MOST_MISSED = 2
"""Unanswered probes in a row at which an engine counts as dead."""

MOST_BUSY_SECONDS = 1800
"""Longest time for which a healthy engine may leave probes without an answer."""


def planned_workloads(row: ReleaseRow) -> tuple[Workload, ...]:
    """The workloads of its plan; empty in states in which only some of them may have started."""
    if row.plan is None or row.state not in SERVING | {ReleaseState.STOPPING}:
        return ()
    return tuple(map(planned_workload, row.plan.containers))


@dataclass(frozen=True)
class ReleaseStatus:
    """A release with the facts about it that follow from the cluster's state."""

    cluster: ClusterState
    own: ReleaseRow

    @cached_property
    def record(self) -> RepairRecord:
        """The release's repair record."""
        return self.cluster.record(self.own.id)

    @property
    def restart(self) -> RestartSpec:
        """The `restart` section of its spec."""
        return self.own.release.spec.restart if self.own.release else RestartSpec()

    @cached_property
    def delayed_until(self) -> str:
        """Time of day before which it must not start; empty = it may start now."""
        when, now = self.record.not_before, self.cluster.now
        # A later time is that of a clock which was ahead.
        latest = not_before(now, self.record.attempts + self.record.elsewhere + 1)
        return f"{when:%H:%M:%S} UTC" if when and now < when <= latest else ""

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """All workloads that should run: the ledger's, and planned ones that it lacks."""
        listed = {one.name for one in self.own.workloads}
        planned = planned_workloads(self.own)
        return (*self.own.workloads, *(one for one in planned if one.name not in listed))

    @property
    def is_foreign(self) -> bool:
        """Whether one of its hosts is left to the reconcile of another site."""
        return any(one.host in self.cluster.foreign_hosts for one in self.workloads)

    @cached_property
    def unreachable(self) -> tuple[Observation, ...]:
        """Observations of its places that do not answer."""
        observed = (self.cluster.observation(one) for one in self.workloads)
        return tuple({one.place: one for one in observed if one and one.unreachable_since}.values())

    @cached_property
    def unreachable_seconds(self) -> float:
        """The longest time for which one of its places has been unreachable."""
        since = [one.unreachable_since for one in self.unreachable if one.unreachable_since]
        return (self.cluster.now - min(since)).total_seconds() if since else 0.0

    @cached_property
    def in_reach(self) -> frozenset[int]:
        """Its replicas of which all hosts answer."""
        away = {one.place for one in self.unreachable}
        cut_off = {one.replica for one in self.workloads if place_of(one) in away}
        return frozenset(one.replica for one in self.workloads) - cut_off

    @property
    def up(self) -> frozenset[int]:
        """Its replicas that run; none while it does not answer, since any of them may be silent."""
        if self.silent and self.own.state == ReleaseState.RUNNING:
            return frozenset()
        return self.in_reach - {one.replica for one in self.workloads if one.name in self.dead}

    @cached_property
    def unlisted(self) -> tuple[Workload, ...]:
        """Workloads that run as planned, but are not in the ledger, or with another identity."""
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
        """The state, by name, of each workload that does not run although its place answers."""
        states = {}
        for one in self.workloads:
            place, observed = self.cluster.observation(one), self._observed(one)
            if place and not place.unreachable_since and not (observed and observed.running):
                states[one.name] = observed.state if observed else "it is gone"
        return states

    @property
    def silent(self) -> str:
        """Why it counts as dead although it runs; empty = it does not."""
        if self.record.missed >= MOST_MISSED:
            return f"it did not answer {self.record.missed} times in a row"
        release, begun = self.own.release, self.record.started_at
        deadlines = release.spec.readiness.deadlines if release else Deadlines()
        allowed = deadlines.load_seconds + deadlines.warm_up_seconds
        if begun and self.cluster.now - begun > timedelta(seconds=allowed):
            return f"it has not answered within {allowed:g} s of its start"
        return ""

    @cached_property
    def loading_next_to_dead(self) -> tuple[str, ...]:
        """Restarted workloads that have not answered yet, on an accelerator of a dead replica.

        An engine plans with the memory that is free while it loads, so that of another replica must
        not start then. Empty once the deadline of the restart has passed.
        """
        begun, plan = self.record.started_at, self.own.plan
        if not begun or not plan or not self.dead or self.silent:
            return ()
        lost = {one.replica for one in self.workloads if one.name in self.dead}
        planned = [
            (planned_workload(one), {(one.host, device) for device in one.devices})
            for one in plan.containers
        ]
        used = set[tuple[str, str]]().union(*(own for one, own in planned if one.replica in lost))
        return tuple(
            one.name
            for one, own in planned
            if one.replica not in lost
            and used & own
            and (seen := self._observed(one))
            and seen.since > begun - CLOCKS
        )

    def _observed(self, workload: Workload) -> ObservedWorkload | None:
        observation = self.cluster.observation(workload)
        there = observation.workloads if observation else ()
        own = (one for one in there if one.name == workload.name and one.release == self.own.id)
        return next(own, None)
