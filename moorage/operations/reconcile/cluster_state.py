"""Ledger and hosts at one moment: the input of all decisions. Moments are UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from moorage.common.values import Value
from moorage.engines.launch import Workload
from moorage.inventory.fleet import Avoided
from moorage.releases.states import ReleaseState
from moorage.spec import RestartSpec, RuntimeName


class Place(Value):
    """A runtime of a host, where engines run."""

    host: str
    address: str
    runtime: RuntimeName


class ObservedWorkload(Value):
    """A container or process on a host that is labelled as this ledger's, or is a helper.

    Attributes:
        identity: Container id, or `pid@start-time`.
        release: Empty for a helper.
        state: Its state in words.
        since: When it was created.
        helper: What a helper container is for; empty = it is an engine's.
        fresh: Whether it was created and never started.
    """

    name: str
    identity: str
    release: str = ""
    model: str = ""
    running: bool
    state: str
    since: datetime
    helper: str = ""
    fresh: bool = False


class Observation(Value):
    """The workloads of one place, or why they cannot be listed.

    Attributes:
        unreachable_since: None = the place answered.
        detail: Why it did not answer.
    """

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
        failure: The latest problem.
        started_at: Moment of the latest restart; None = it has answered since.
        well_since: Since when it answers after a restart; None = it was never restarted.
        probed_at: Moment of the latest probe.
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


class LedgerRelease(Value):
    """A release in the ledger that is unfinished, serves, or failed and still holds something.

    Attributes:
        since: When it came into its state.
        busy: Who works on its model now; empty = nobody.
        planned: Every workload of its plan; empty when its record cannot be read.
        workloads: Its workloads in the ledger.
        successor: Release for which it stops; empty = it does not stop for one.
        successor_serves: Whether the successor took over, whatever became of it since.
        seats: Accelerators that it uses, by host.
        start_seconds: How long a start may take until the first answer.
    """

    id: str
    model: str
    state: ReleaseState
    since: datetime
    cause: str = ""
    busy: str = ""
    restart: RestartSpec = RestartSpec()
    planned: tuple[Workload, ...] = ()
    workloads: tuple[Workload, ...] = ()
    successor: str = ""
    successor_serves: bool = False
    seats: tuple[Avoided, ...] = ()
    start_seconds: float = 1020.0


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


class ClusterState(Value):
    """Ledger and hosts at one moment.

    Attributes:
        releases: In order of creation.
        hosts: Reachable hosts of the fleet: models may be placed there.
        busy: By model, who works on it.
    """

    now: datetime
    patience: Patience = Patience()
    releases: tuple[LedgerRelease, ...] = ()
    observations: tuple[Observation, ...] = ()
    records: tuple[RepairRecord, ...] = ()
    hosts: frozenset[str] = frozenset()
    busy: dict[str, str] = {}

    def record(self, release: str) -> RepairRecord:
        """The repair record of a release; a blank one where there is none."""
        own = (one for one in self.records if one.release == release)
        return next(own, RepairRecord(release=release))

    def observation(self, workload: Workload) -> Observation | None:
        """What the place of a workload shows; None when it was not observed."""
        where = Place(host=workload.host, address=workload.address, runtime=workload.runtime)
        return next((one for one in self.observations if one.place == where), None)


MOST_MISSED = 2
"""Probes in a row that an engine may leave unanswered before it counts as dead."""


@dataclass(frozen=True)
class ReleaseStatus:
    """A release in the cluster, and what follows from both."""

    cluster: ClusterState
    own: LedgerRelease

    @cached_property
    def record(self) -> RepairRecord:
        """Its repair record."""
        return self.cluster.record(self.own.id)

    @cached_property
    def delayed_until(self) -> str:
        """Time of day before which it must not start; empty = it may start now."""
        when = self.record.not_before
        return f"{when:%H:%M:%S} UTC" if when and when > self.cluster.now else ""

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """All workloads that should run, as the ledger has them where it does."""
        listed = {one.name for one in self.own.workloads}
        missing = tuple(one for one in self.own.planned if one.name not in listed)
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
        begun = self.record.started_at
        if begun and self.cluster.now - begun > timedelta(seconds=self.own.start_seconds):
            return f"it has not answered within {self.own.start_seconds:g} s of its start"
        return ""

    def _observed(self, workload: Workload) -> ObservedWorkload | None:
        observation = self.cluster.observation(workload)
        there = observation.workloads if observation else ()
        own = (one for one in there if one.name == workload.name and one.release == self.own.id)
        return next(own, None)
