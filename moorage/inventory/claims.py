"""Claims: accelerator memory, RAM, cores and ports that are reserved for a release."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from moorage.common.values import Value


class Resource(StrEnum):
    """Kinds of resources that a release claims."""

    ACCELERATOR = "accelerator"
    """Memory of one accelerator, in bytes; `index` is the accelerator's index."""

    RAM = "ram"
    """RAM of the host, in bytes; `index` is 0."""

    CORES = "cores"
    """Processor cores of the host; `index` is 0."""

    PORT = "port"
    """One TCP port; `index` is the port, `amount` is 1."""


@dataclass(slots=True, unsafe_hash=True)
class Claim:
    """One reservation on one host. Never modified; not frozen, since that makes it slower.

    Attributes:
        index: Number of the resource, where a host has several.
        release: Release that holds the claim; empty while it is only proposed.
        pending: Whether the release is not proven yet, so that its claims may still be unused.
        links: Whether it is only a port that joins a replica's hosts; not stored in the ledger.
        device: Identifier by which a container gets the accelerator; empty = by its index.
    """

    host: str
    resource: Resource
    amount: int
    index: int = 0
    release: str = ""
    pending: bool = False
    links: bool = False
    device: str = ""


class Capacity(Value):
    """How much of a resource a host has for claims, claimed or not; reserves are subtracted."""

    resource: Resource
    index: int = 0
    amount: int


def by_host(claims: Iterable[Claim]) -> dict[str, list[Claim]]:
    """The claims by host, in their order; hosts without claims are absent."""
    hosts: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        hosts[claim.host].append(claim)
    return dict(hosts)


def remainder(held: Sequence[Claim], used: Sequence[Claim]) -> tuple[Claim, ...]:
    """Claims less the amounts that other claims use of the same resources."""
    taken: Counter[tuple[str, Resource, int]] = Counter()
    for claim in used:
        taken[claim.host, claim.resource, claim.index] += claim.amount
    left = []
    for claim in held:
        key = (claim.host, claim.resource, claim.index)
        part = min(claim.amount, taken[key])
        taken[key] -= part
        if claim.amount > part:
            left.append(replace(claim, amount=claim.amount - part))
    return tuple(left)
