"""The current state in the ledger, as far as monitoring needs it."""

from collections import Counter
from collections.abc import Collection, Mapping

from moorage.common.values import Value
from moorage.gateway.gateway import Gateway
from moorage.gateway.usage import Usage
from moorage.inventory.claims import Capacity, Claim, Resource
from moorage.operations.metrics.targets import Deployed
from moorage.operations.reconcile.counts import ReconcileCount
from moorage.releases.states import ReleaseState

Place = tuple[str, Resource, int]
"""Host, resource, and index of the resource."""

MEMORY = frozenset({Resource.ACCELERATOR, Resource.RAM})
"""Resources measured in bytes."""


class Serving(Value):
    """A release that serves now."""

    deployed: Deployed
    state: ReleaseState


class Present(Value):
    """The ledger at one moment.

    Attributes:
        states: Number of releases in each state.
        capacities: Capacities by host, of all hosts that ever had claims.
        unseen: Hosts that do not answer.
        used: Usage of callers today (UTC).
    """

    states: dict[ReleaseState, int] = {}
    serving: tuple[Serving, ...] = ()
    claims: tuple[Claim, ...] = ()
    capacities: dict[str, tuple[Capacity, ...]] = {}
    unseen: frozenset[str] = frozenset()
    reconciles: tuple[ReconcileCount, ...] = ()
    gateways: tuple[Gateway, ...] = ()
    used: tuple[Usage, ...] = ()


def hosts_in_use(claims: Collection[Claim]) -> set[str]:
    """Hosts with claims; a host that has left the fleet has none."""
    return {one.host for one in claims}


def capacity_bytes(capacities: Mapping[str, Collection[Capacity]]) -> dict[Place, int]:
    """Claimable memory without any claims, by place."""
    return {
        (host, one.resource, one.index): one.amount
        for host, own in capacities.items()
        for one in own
    }


def claimed_bytes(claims: Collection[Claim], places: Collection[Place]) -> dict[Place, int]:
    """Claimed memory by place, including places with 0."""
    found = Counter(dict.fromkeys(places, 0))
    for one in claims:
        if one.resource in MEMORY:
            found[one.host, one.resource, one.index] += one.amount
    return dict(found)


def used_by_model(present: Present) -> dict[str, Usage]:
    """The sum of all callers' usage of each model, including serving models without requests."""
    found = {one.deployed.model: Usage(caller="", model="", day="") for one in present.serving}
    for one in present.used:
        before = found.get(one.model)
        found[one.model] = before.plus(one) if before else one
    return found
