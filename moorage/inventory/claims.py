"""What is reserved for a release: accelerator memory, RAM and ports of hosts."""

from collections import Counter
from collections.abc import Sequence
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


class Claim(Value):
    """One reservation on one host.

    Attributes:
        index: Which one, where a host has several.
        release: Release that holds it; empty while it is only proposed.
        pending: Whether the release has not been proven yet, so that what it claims may not be
            in use yet.
        links: Whether it only joins the hosts of a replica; the ledger does not keep that.
    """

    host: str
    resource: Resource
    index: int = 0
    amount: int
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
            left.append(claim.model_copy(update={"amount": claim.amount - part}))
    return tuple(left)
