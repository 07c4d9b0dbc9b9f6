"""Step look: combine the ledger's records and the hosts' workloads into a `ClusterState`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta

from moorage.adapters.hosts.runtime import list_workloads
from moorage.adapters.system.parallel import map_parallel
from moorage.adapters.system.threads import in_thread
from moorage.common.units import counted
from moorage.engines.workload import Workload
from moorage.inventory.access import LOCAL, parse_access
from moorage.inventory.fleet import Fleet, at_site
from moorage.operations.reconcile.cluster_state import (
    ClusterState,
    Observation,
    Patience,
    planned_workloads,
)
from moorage.operations.reconcile.counts import run_kind
from moorage.operations.reconcile.moved_hosts import moved_hosts, without_former
from moorage.operations.reconcile.observed_workload import ObservedWorkload, Place, place_of
from moorage.releases.addresses import addresses_in, reached_at
from moorage.releases.release_row import ReleaseRow, successor_of
from moorage.releases.states import SERVING, ReleaseState
from moorage.spec import RuntimeName
from tasks.addresses import record_addresses
from tasks.cleanup import took_over
from tasks.context import ledger, settings
from tasks.flow_task import flow_task
from tasks.journal import step

OBSERVE_SECONDS = 20.0
"""Deadline for one place (host and runtime); a place that misses it counts as unreachable."""

LONGEST_GAP = timedelta(hours=2)
"""Longest time between two reconciles that counts for a host which did not answer either of them.
Reconciles may be an hour apart. After a longer gap it was this machine that was away."""


@flow_task("look", "look at ledger and hosts", timeout_seconds=120, retried=True)
async def observe_fleet(fleet: Fleet, *, keep: bool = True) -> ClusterState:
    """Read the ledger and list the workloads on all known hosts.

    At a site, hosts of other sites are left out. So are hosts that its fleet does not name, unless
    they answer: they may be another site's.

    Args:
        fleet: Hosts to observe in addition to those that the ledger knows.
        keep: Whether the ledger records which hosts are unreachable.
    """
    with step("look") as note:
        cluster = await in_thread(_cluster_state, fleet, keep)
        places = cluster.observations
        unreachable = sorted({one.place.host for one in places if one.unreachable_since})
        missing = f"; unreachable: {', '.join(unreachable)}" if unreachable else ""
        hosts = len({one.place.host for one in places})
        seen = f"{counted(hosts, 'host')}, {counted(len(cluster.releases), 'release')}"
        note.say(f"{seen}{missing}")
        return cluster


def _cluster_state(fleet: Fleet, keep: bool) -> ClusterState:
    """Read the ledger first: a workload that starts later is found, but is too young to judge."""
    own, limits, now = ledger(), settings(), datetime.now(UTC)
    releases = own.releases
    rows = [*releases.unfinished(), *releases.not_undone(), *releases.in_states(SERVING)]
    sleepers = releases.in_states([ReleaseState.ASLEEP])
    rows += [row for row in sleepers if row.workloads]
    rows.sort(key=lambda row: (row.created_at, row.id))
    near = at_site(fleet, limits.site)
    rows, observations, addresses = _observe_hosts(fleet, near, rows, now)
    unreachable = {
        one.place.host: (one.unreachable_since, one.detail)
        for one in observations
        if one.unreachable_since
    }
    reachable = {one.place.host for one in observations if one.unreachable_since is None}
    if keep:
        record_addresses(addresses)
        own.unseen_hosts.keep(unreachable, reachable - unreachable.keys())
    return ClusterState(
        now=now,
        patience=Patience(
            orphan_seconds=limits.orphan_seconds,
            lost_seconds=limits.host_lost_seconds,
            probe_seconds=limits.probe_seconds,
        ),
        releases=tuple(rows),
        observations=observations,
        records={one.release: one for one in own.repairs.all()},
        hosts=frozenset(reachable & {host.name for host in near.hosts}) - fleet.avoided_hosts,
        avoid=fleet.avoid,
        foreign_hosts=frozenset(one.host for one in _workloads(rows))
        - reachable
        - set(unreachable),
        busy=_busy(rows, observations),
        sleepers={row.model: row.id for row in sleepers},
        took_over=_served_successors(rows),
    )


def _busy(rows: Sequence[ReleaseRow], observations: Sequence[Observation]) -> dict[str, str]:
    """The models on which a flow works, and what it is."""
    models = {row.model for row in rows}
    models |= {found.model for one in observations for found in one.workloads if found.model}
    holders = ledger().locks.holders(sorted(models))
    return {name: owner.note or "another process" for name, owner in holders.items()}


def _observe_hosts(
    fleet: Fleet, near: Fleet, rows: list[ReleaseRow], now: datetime
) -> tuple[list[ReleaseRow], tuple[Observation, ...], dict[str, str]]:
    """Observe the hosts of this site (`near`), reached as its fleet says.

    Returns the releases at the addresses of their hosts, the observations, and these addresses.
    """
    named = {host.name: host.access.url for host in near.hosts}
    known = ledger().unseen_hosts.known_hosts()
    addresses = addresses_in(near, known)
    rows = [reached_at(row, addresses) for row in rows]
    workloads = _workloads(rows)
    elsewhere = {host.name for host in fleet.hosts} - named.keys()
    site = settings().site
    places = _places(named if site else {**known, **named}, workloads, elsewhere)
    observations = _observe(places, workloads, now)
    if site:  # a silent host that its fleet lacks may be another site's
        seen = (one for one in observations if one.place.host in named or not one.unreachable_since)
        observations = tuple(seen)
    moved = moved_hosts(named, known, rows, observations)
    rows = [reached_at(row, moved) for row in rows]
    return rows, without_former(observations, moved), addresses | moved


def _served_successors(rows: Iterable[ReleaseRow]) -> frozenset[str]:
    """Successors for which other releases stop and which once served, in whatever state now."""
    return frozenset(filter(took_over, {successor_of(row) for row in rows} - {""}))


def _workloads(rows: Iterable[ReleaseRow]) -> list[Workload]:
    return [one for row in rows for one in (*row.workloads, *planned_workloads(row))]


def _places(
    named: Mapping[str, str], workloads: Iterable[Workload], elsewhere: Set[str]
) -> list[Place]:
    """Places where workloads run, may run, or once ran, except on hosts that are `elsewhere`."""
    hosts = {name: address for name, address in named.items() if name not in elsewhere}
    places = {
        Place(host=name, address=address, runtime=RuntimeName.DOCKER): None
        for name, address in hosts.items()
        if not address.startswith("http")  # a Ray cluster, which has no Docker
    }
    local = next((n for n, address in hosts.items() if address == LOCAL), LOCAL)
    places[Place(host=local, address=LOCAL, runtime=RuntimeName.PROCESS)] = None
    used = dict.fromkeys(map(place_of, workloads))
    return [place for place in places | used if place.host not in elsewhere]


def _observe(
    places: Sequence[Place], workloads: Sequence[Workload], now: datetime
) -> tuple[Observation, ...]:
    identity, limits = ledger().identity, settings()
    used = defaultdict[Place, dict[str, Workload]](dict)
    for one in workloads:
        used[place_of(one)].setdefault(one.name, one)  # as recorded, before as planned

    def find(place: Place) -> tuple[ObservedWorkload, ...]:
        return list_workloads(place, identity, limits, tuple(used.get(place, {}).values()))

    answers = map_parallel(find, places, OBSERVE_SECONDS)
    before = _unseen_since(now)
    observations = []
    for place, answer in zip(places, answers, strict=True):
        if not isinstance(answer, Exception):
            distinct = {(one.identity, one.name): one for one in answer}
            observations.append(Observation(place=place, workloads=tuple(distinct.values())))
        # This machine needs no Docker as long as no workload runs in it.
        elif place in used or parse_access(place.address).is_remote:
            late = isinstance(answer, TimeoutError) and not answer.args
            silent = f"it did not answer within {OBSERVE_SECONDS:g} s"
            detail = silent if late else str(answer) or repr(answer)
            since = before.get(place.host, now)
            observations.append(Observation(place=place, unreachable_since=since, detail=detail))
    return tuple(observations)


def _unseen_since(now: datetime) -> dict[str, datetime]:
    """The hosts that have not answered while reconciles went on; none after too long a gap."""
    kind = run_kind(settings().site)
    runs = (one.latest for one in ledger().reconcile_counts.all() if one.kind == kind)
    latest = next(runs, None)
    # A run in the future is that of a clock which was ahead.
    if latest is None or abs(now - latest) > LONGEST_GAP:
        return {}
    return ledger().unseen_hosts.unseen()
