"""What is reserved for a release: accelerator memory, RAM and ports of hosts."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from moorage.common.values import Value


class Resource(StrEnum):
    """What can be claimed."""

    ACCELERATOR = "accelerator"
    """Memory of one accelerator, in bytes; `index` is the accelerator's."""

    RAM = "ram"
    """RAM of the host, in bytes; `index` is 0."""

    CORES = "cores"
    """Processor cores of the host; `index` is 0."""

    PORT = "port"
    """One TCP port; `index` is the port, `amount` is 1."""


@dataclass(slots=True, unsafe_hash=True)
class Claim:
    """One reservation on one host. Immutable by use: a frozen one takes longer to make.

    Attributes:
        index: Which one, where a host has several.
        release: Release that holds it; empty while it is only proposed.
        pending: Whether the release has not been proven yet, so that what it claims may not be
            in use yet.
        links: Whether it only joins the hosts of a replica; the ledger does not keep that.
    """

    host: str
    resource: Resource
    amount: int
    index: int = 0
    release: str = ""
    pending: bool = False
    links: bool = False


class Capacity(Value):
    """How much of a resource a host has, whatever is claimed; what is never claimed is left out.

    Attributes:
        index: Which one, where a host has several.
    """

    resource: Resource
    index: int = 0
    amount: int


def by_host(claims: Iterable[Claim]) -> dict[str, list[Claim]]:
    """The claims of each host that has any, in their order."""
    hosts: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        hosts[claim.host].append(claim)
    return dict(hosts)


def remainder(held: Sequence[Claim], used: Sequence[Claim]) -> tuple[Claim, ...]:
    """What is left of claims when others take their part of the same resources."""
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
