"""Ledger and hosts at one moment: the input of all decisions.

Moments are UTC.
"""

from __future__ import annotations

from datetime import datetime

from moorage.common.values import Value
from moorage.engines.launch import Workload
from moorage.inventory.fleet import Avoided
from moorage.releases.states import ReleaseState
from moorage.spec import RestartSpec, RuntimeName


class Place(Value):
    """Where engines run: a runtime of a host.

    Attributes:
        host: Name of the host.
        address: How it is reached.
        runtime: What starts engines there.
    """

    host: str
    address: str
    runtime: RuntimeName


class ObservedWorkload(Value):
    """A container or process on a host that says it is this ledger's, or is a helper.

    Attributes:
        name: Its name.
        identity: Container id, or `pid@start-time`.
        release: Release that it says it belongs to; empty for a helper.
        model: Model of that release.
        running: Whether it runs.
        state: Its state in words.
        since: When it was made.
        helper: What a helper container is for; empty = it is an engine's.
        fresh: Whether it was made and never started.
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
    """What one place shows.

    Attributes:
        place: The place.
        unseen_since: Since when it cannot be looked at; None = it can.
        detail: Why not.
        found: What is there.
    """

    place: Place
    unseen_since: datetime | None = None
    detail: str = ""
    found: tuple[ObservedWorkload, ...] = ()


class RepairRecord(Value):
    """What is kept about the repairs of a release from one look to the next.

    Attributes:
        release: The release.
        attempts: How often it was started again since it last was well for long.
        elsewhere: How often it was to be placed elsewhere meanwhile.
        not_before: Earliest moment of the next start; None = at once.
        failure: What was wrong last.
        started_at: When it was started again last, and has not answered since; None = it has.
        well_since: Since when it answers after a start; None = it never was started again.
        probed_at: When it was looked at last, for whether it answers.
        missed: Questions in a row that it did not answer.
        tokens: Tokens that its engines had generated then, as their metrics count, by workload.
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
    """A release as the ledger has it: unfinished, serving, or failed and still holding something.

    Attributes:
        id: The release.
        model: Its model.
        state: Its state.
        since: When it came into that state.
        cause: Why.
        busy: Who works on its model now; empty = nobody, so nobody else will finish what is open.
        restart: What its spec wants when it dies.
        planned: Everything that its plan starts; empty when its record cannot be read.
        workloads: What the ledger says that it runs.
        successor: Release for which it stops; empty = it does not.
        successor_serves: Whether that one took over, whatever became of it since.
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
    """How long things are left alone, in seconds.

    Attributes:
        orphan_seconds: What nobody owns.
        lost_seconds: A host that is out of sight, until its claims are given up.
        probe_seconds: A release, between two questions whether it answers.
    """

    orphan_seconds: float = 600.0
    lost_seconds: float = 86_400.0
    probe_seconds: float = 60.0


class ClusterState(Value):
    """Ledger and hosts at one moment.

    Attributes:
        now: The moment.
        patience: How long things are left alone.
        releases: What the ledger has, in order of creation.
        observations: What each place shows.
        records: What is kept about repairs.
        hosts: Names of the hosts of the fleet that can be looked at: models may be placed there.
        busy: Who works on which model.
    """

    now: datetime
    patience: Patience = Patience()
    releases: tuple[LedgerRelease, ...] = ()
    observations: tuple[Observation, ...] = ()
    records: tuple[RepairRecord, ...] = ()
    hosts: frozenset[str] = frozenset()
    busy: dict[str, str] = {}

    def record(self, release: str) -> RepairRecord:
        """What is kept about a release; nothing yet."""
        return next(
            (one for one in self.records if one.release == release), RepairRecord(release=release)
        )

    def observation(self, workload: Workload) -> Observation | None:
        """What the place of a workload shows; None when nobody looked."""
        where = Place(host=workload.host, address=workload.address, runtime=workload.runtime)
        return next((one for one in self.observations if one.place == where), None)
