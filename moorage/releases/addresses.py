"""How the hosts of a release are reached now: a release outlives keys, users and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from moorage.engines.workload import Workload
from moorage.inventory.access import current_address, machine_of
from moorage.inventory.fleet import Fleet
from moorage.releases.release_row import ReleaseRow
from moorage.spec import RuntimeName

if TYPE_CHECKING:
    from moorage.engines.launch import ContainerSpec

Container = TypeVar("Container", "ContainerSpec", Workload)


def addresses_in(fleet: Fleet, known: Mapping[str, str]) -> dict[str, str]:
    """How the fleet reaches the hosts that are `known`, where it means the same machines.

    Another machine under a known name is not followed here: only what runs there proves that the
    host has moved (`tasks/observe_fleet.py`).
    """
    named = {host.name: host.access.url for host in fleet.hosts}
    return {
        name: named[name]
        for name in known.keys() & named.keys()
        if machine_of(known[name]) == machine_of(named[name])
    }


def hosts_of(row: ReleaseRow) -> set[str]:
    """The hosts of a release's workloads, and of its plan."""
    planned = {one.host for one in row.plan.containers} if row.plan else set()
    return planned | {one.host for one in row.workloads}


def reached_at(row: ReleaseRow, addresses: Mapping[str, str]) -> ReleaseRow:
    """A release whose containers are reached at the addresses of their hosts, where these say so.

    Args:
        addresses: Address of each host, as `Access.url`.
    """
    workloads = tuple(_reached_at(one, addresses) for one in row.workloads)
    release = row.release
    if release and release.plan:
        containers = tuple(_reached_at(one, addresses) for one in release.plan.containers)
        if containers != release.plan.containers:
            plan = release.plan.with_containers(containers)
            release = release.model_copy(update={"plan": plan})
    return replace(row, workloads=workloads, release=release)


def _reached_at(one: Container, addresses: Mapping[str, str]) -> Container:
    if one.runtime != RuntimeName.DOCKER or one.host not in addresses:
        return one
    address = current_address(one.address, addresses[one.host])
    return one if address == one.address else one.model_copy(update={"address": address})
