"""Hosts that have moved to another machine name: what runs there proves that they are the same."""

from collections.abc import Iterable, Mapping

from moorage.inventory.access import machine_of
from moorage.operations.reconcile.cluster_state import Observation
from moorage.releases.release_row import ReleaseRow
from moorage.spec import RuntimeName


def moved_hosts(
    named: Mapping[str, str],
    known: Mapping[str, str],
    rows: Iterable[ReleaseRow],
    observations: Iterable[Observation],
) -> dict[str, str]:
    """The new address by name of each host that a fleet has at another machine than the ledger.

    It is the same host if a container of ours is there: no two have the same id. `named` and
    `known` are the addresses of hosts in the fleet and in the ledger.
    """
    ours = {(one.host, one.identity) for row in rows for one in row.workloads if one.identity}
    places = ((one.place, one.workloads) for one in observations)
    return {
        at.host: at.address
        for at, workloads in places
        if at.runtime == RuntimeName.DOCKER
        and at.address == named.get(at.host)
        and machine_of(at.address) != machine_of(known.get(at.host, at.address))
        and any((at.host, one.identity) in ours for one in workloads)
    }


def without_former(
    observations: Iterable[Observation], moved: Mapping[str, str]
) -> tuple[Observation, ...]:
    """The observations without the former addresses of hosts that have moved."""
    places = ((one, one.place) for one in observations)
    return tuple(one for one, at in places if moved.get(at.host, at.address) == at.address)
