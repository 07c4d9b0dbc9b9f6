"""Step look: the state of ledger and hosts, as one value to decide on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from prefect import task

from moorage.adapters.hosts.runtime import list_workloads
from moorage.adapters.system.parallel import map_parallel
from moorage.adapters.system.threads import in_thread
from moorage.engines.launch import Workload, planned_workload
from moorage.inventory.access import LOCAL, parse_access
from moorage.inventory.fleet import Avoided, Fleet
from moorage.operations.reconcile.cluster_state import (
    ClusterState,
    LedgerRelease,
    Observation,
    ObservedWorkload,
    Patience,
    Place,
)
from moorage.placement.placement import CPU
from moorage.releases.release import ReleaseRow, successor_of
from moorage.releases.states import SERVING, ReleaseState
from moorage.spec import Deadlines, RestartSpec, RuntimeName
from tasks.cleanup import took_over
from tasks.context import RETRIED, ledger, settings
from tasks.journal import step

LOOK_SECONDS = 20.0
"""How long one place may take to answer; a slower one counts as unreachable."""

PLANNED = SERVING | {ReleaseState.STOPPING}
"""States in which all of a plan was started."""


@task(name="look", task_run_name="look at ledger and hosts", timeout_seconds=120, **RETRIED)
async def observe_fleet(fleet: Fleet, *, keep: bool = True) -> ClusterState:
    """Compare what the ledger says with what the hosts show.

    Args:
        fleet: Hosts to observe in addition to those on which something is claimed.
        keep: Whether the ledger records which hosts are unreachable.
    """
    with step("look") as note:
        cluster = await in_thread(_cluster_state, fleet, keep)
        places = cluster.observations
        unreachable = sorted({one.place.host for one in places if one.unreachable_since})
        missing = f"; out of sight: {', '.join(unreachable)}" if unreachable else ""
        hosts = len({one.place.host for one in places})
        note.say(f"{hosts} hosts, {len(cluster.releases)} releases{missing}")
        return cluster


def _cluster_state(fleet: Fleet, keep: bool) -> ClusterState:
    """Reads the ledger first: what starts after that is observed on a host, and too young."""
    own, now = ledger(), datetime.now(UTC)
    rows = _rows()
    observations = _observe(_places(fleet, rows), rows, now, keep)
    observed = {one.model for place in observations for one in place.workloads if one.model}
    models = {row.model for row in rows} | observed
    busy = {
        name: owner.note or "another process"
        for name, owner in own.locks.holders(sorted(models)).items()
    }
    limits = settings()
    reachable = {one.place.host for one in observations if one.unreachable_since is None}
    return ClusterState(
        now=now,
        patience=Patience(
            orphan_seconds=limits.orphan_seconds,
            lost_seconds=limits.host_lost_seconds,
            probe_seconds=limits.probe_seconds,
        ),
        releases=tuple(_ledger_release(row, busy.get(row.model, "")) for row in rows),
        observations=observations,
        records=own.repairs.all(),
        hosts=frozenset(reachable & {host.name for host in fleet.hosts}),
        busy=busy,
    )


def _rows() -> list[ReleaseRow]:
    own = ledger().releases
    rows = [*own.unfinished(), *own.not_undone(), *own.in_states(SERVING)]
    return sorted(rows, key=lambda row: (row.created_at, row.id))


def _ledger_release(row: ReleaseRow, busy: str) -> LedgerRelease:
    record, successor = row.release, successor_of(row)
    spec = record.spec if record else None
    deadlines = spec.readiness.deadlines if spec else Deadlines()
    return LedgerRelease(
        id=row.id,
        model=row.model,
        state=row.state,
        since=row.updated_at,
        cause=row.cause,
        busy=busy,
        restart=spec.restart if spec else RestartSpec(),
        planned=_planned(row),
        workloads=row.workloads,
        successor=successor,
        successor_serves=bool(successor) and took_over(successor),
        seats=_seats(row),
        start_seconds=deadlines.load_seconds + deadlines.warm_up_seconds,
    )


def _planned(row: ReleaseRow) -> tuple[Workload, ...]:
    plan = row.release.plan if row.release else None
    if plan is None or row.state not in PLANNED:
        return ()
    return tuple(planned_workload(spec) for spec in plan.containers)


def _seats(row: ReleaseRow) -> tuple[Avoided, ...]:
    placement = row.release.placement if row.release else None
    return tuple(
        Avoided(host=seat.host, accelerators=seat.accelerators)
        for seat in (placement.seats if placement else ())
        if seat.accelerator_type != CPU and seat.accelerators
    )


def _places(fleet: Fleet, rows: Iterable[ReleaseRow]) -> list[Place]:
    """Where something runs, may run, or ever ran."""
    known = ledger().sightings.known_hosts()
    hosts = {**known, **{host.name: host.access.url for host in fleet.hosts}}
    places = {
        Place(host=name, address=address, runtime=RuntimeName.DOCKER): None
        for name, address in hosts.items()
        if not address.startswith("http")  # a Ray cluster, which has no Docker of its own
    }
    local = next((n for n, address in hosts.items() if address == LOCAL), LOCAL)
    places[Place(host=local, address=LOCAL, runtime=RuntimeName.PROCESS)] = None
    for row in rows:
        for one in (*row.workloads, *_planned(row)):
            places[_place_of(one)] = None
    return list(places)


def _observe(
    places: Sequence[Place], rows: Sequence[ReleaseRow], now: datetime, keep: bool
) -> tuple[Observation, ...]:
    identity, limits = ledger().identity, settings()
    own = [one for row in rows for one in (*row.workloads, *_planned(row))]

    def find(place: Place) -> tuple[ObservedWorkload, ...]:
        known = {one.name: one for one in own if _place_of(one) == place}
        return list_workloads(place, identity, limits, tuple(known.values()))

    answers = map_parallel(find, places, LOOK_SECONDS)
    before = ledger().sightings.unseen()
    observations = []
    for place, answer in zip(places, answers, strict=True):
        if isinstance(answer, Exception):
            since = before.get(place.host, now)
            detail = _describe_error(answer)
            observations.append(Observation(place=place, unreachable_since=since, detail=detail))
        else:
            observations.append(Observation(place=place, workloads=_unique(answer)))
    concerned = _relevant(observations, rows)
    if keep:
        _record_sightings(concerned)
    return concerned


def _relevant(
    observations: Iterable[Observation], rows: Iterable[ReleaseRow]
) -> tuple[Observation, ...]:
    """This machine may well have no Docker, as long as nothing runs in it."""
    used = {_place_of(one) for row in rows for one in (*row.workloads, *_planned(row))}
    return tuple(
        one
        for one in observations
        if one.unreachable_since is None
        or one.place in used
        or parse_access(one.place.address).is_remote
    )


def _record_sightings(observations: Iterable[Observation]) -> None:
    unreachable = {
        one.place.host: (one.unreachable_since, one.detail)
        for one in observations
        if one.unreachable_since
    }
    hosts = {one.place.host for one in observations if one.unreachable_since is None}
    ledger().sightings.keep(unreachable, hosts - unreachable.keys())


def _unique(workloads: Iterable[ObservedWorkload]) -> tuple[ObservedWorkload, ...]:
    return tuple({(one.identity, one.name): one for one in workloads}.values())


def _describe_error(error: Exception) -> str:
    late = isinstance(error, TimeoutError) and not error.args
    return f"it did not answer within {LOOK_SECONDS:g} s" if late else str(error) or repr(error)


def _place_of(workload: Workload) -> Place:
    return Place(host=workload.host, address=workload.address, runtime=workload.runtime)
