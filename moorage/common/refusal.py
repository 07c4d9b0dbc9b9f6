"""Refusals with a reason: one type for hosts, memory, images and topologies."""

from dataclasses import dataclass, fields
from enum import StrEnum


class Reason(StrEnum):
    """Reasons of refusals. Releases store reasons of hosts, so the values must not change."""

    # Reasons to refuse a host.
    UNREACHABLE = "unreachable"
    LABELS = "labels-differ"
    LOCAL_PATH = "model-not-there"
    """No rule returns this any more; metrics and records of releases contain it."""

    NOT_SELECTED = "not-selected"
    KIND = "other-accelerator-kind"
    ENGINE = "engine-cannot-run"
    NO_ACCELERATOR = "no-such-accelerator"
    MIXED_TYPES = "mixed-accelerator-types"
    PARALLELISM = "heads-do-not-divide"
    ACCELERATOR_MEMORY = "accelerator-memory"
    RAM = "ram"
    CORES = "cores"
    DISK = "disk"
    PORT = "port"
    ONE_HOST_ONLY = "one-host-only"
    NOT_JOINABLE = "not-reachable-by-others"
    TOO_FEW_HOSTS = "too-few-hosts"
    TAKEN = "place-taken"

    # Reasons of a memory prediction.
    REJECTED = "rejected"
    """The engine would not start with these settings."""
    UNKNOWN = "unknown"
    """The rules do not cover the model, and moorage does not guess."""

    # Reasons about an image, and about ranks over several hosts.
    NO_IMAGE = "no-image"
    TOPOLOGY = "ranks-do-not-fit-hosts"


@dataclass(eq=False, slots=True)
class Refusal(Exception):
    """A refusal with its reason. A rule raises it, or returns it where a refusal is usual.

    Attributes:
        note: The reason in words, where the numbers are not enough.
        needed: Needed amount of the scarce resource, in bytes or cores; 0 = not about an amount.
        available: Available amount of it; for accelerators, of the one with the least.
        count: Number of accelerators needed together; 0 = not about accelerators.
        there: Number of such accelerators on the host.
        held_by: Releases that hold some of the resource.
    """

    reason: Reason
    note: str = ""
    needed: int = 0
    available: int = 0
    count: int = 0
    there: int = 0
    held_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.note or self.reason

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions pickle only their positional arguments.
        return Refusal, tuple(getattr(self, field.name) for field in fields(self))
