"""Why something cannot be: one type for hosts, memory, images and topologies."""

from dataclasses import dataclass, fields
from enum import StrEnum


class Reason(StrEnum):
    """Named reasons. Releases store those of hosts, so the values stay as they are."""

    # Of a host that is not taken.
    UNREACHABLE = "unreachable"
    LABELS = "labels-differ"
    LOCAL_PATH = "model-not-there"
    """No rule gives it; metrics and records of releases name it."""

    NOT_SELECTED = "not-selected"
    KIND = "other-accelerator-kind"
    ENGINE = "engine-cannot-run"
    NO_ACCELERATOR = "no-such-accelerator"
    MIXED_TYPES = "mixed-accelerator-types"
    PARALLELISM = "heads-do-not-divide"
    ACCELERATOR_MEMORY = "accelerator-memory"
    RAM = "ram"
    CORES = "cores"
    PORT = "port"
    ONE_HOST_ONLY = "one-host-only"
    NOT_JOINABLE = "not-reachable-by-others"
    TOO_FEW_HOSTS = "too-few-hosts"
    TAKEN = "place-taken"

    # Of a memory prediction.
    REJECTED = "rejected"
    """The engine would not start with these settings."""
    UNKNOWN = "unknown"
    """The rules do not cover the model; nothing is guessed."""

    # Of an image, and of ranks over hosts.
    NO_IMAGE = "no-image"
    TOPOLOGY = "ranks-do-not-fit-hosts"


@dataclass(eq=False, slots=True)
class Refusal(Exception):
    """Why something cannot be. A rule raises it, or returns it where "no" is a usual answer.

    Attributes:
        note: The reason in words, where the numbers do not say all.
        needed: What was needed of the scarce resource: bytes, or cores; 0 = it was not about that.
        available: What was available of it; of accelerators, on the one with least room.
        count: Accelerators that were wanted together, 0 = it was not about them.
        there: Accelerators of that kind on the host.
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
        # An exception remembers positional arguments only.
        return Refusal, tuple(getattr(self, field.name) for field in fields(self))
