"""The outcome of placing a model, and the reason for every host that was not taken."""

from __future__ import annotations

from enum import StrEnum

from moorage.placement.claims import Claim, Resource
from moorage.spec import EngineName, RuntimeName
from moorage.values import Origin, Value

CPU = "cpu"
"""Accelerator type of a seat without accelerators."""


class Role(StrEnum):
    """Part that a container plays in a replica."""

    LEADER = "leader"
    FOLLOWER = "follower"


class Refusal(StrEnum):
    """Named reasons why a host is not taken."""

    UNREACHABLE = "unreachable"
    LABELS = "labels-differ"
    NOT_SELECTED = "not-selected"
    ENGINE = "engine-cannot-run"
    NO_ACCELERATOR = "no-such-accelerator"
    MIXED_TYPES = "mixed-accelerator-types"
    PARALLELISM = "heads-do-not-divide"
    ACCELERATOR_MEMORY = "accelerator-memory"
    RAM = "ram"
    PORT = "port"
    ONE_HOST_ONLY = "one-host-only"


class Verdict(Value):
    """What became of one host.

    Attributes:
        host: Its name.
        refusal: The named reason, or None when the host could take the model.
        detail: The reason with its numbers, or what was chosen there.
        needed: Bytes that were needed of the scarce resource; 0 when it was not about bytes.
        available: Bytes that were available of it.
    """

    host: str
    refusal: Refusal | None = None
    detail: str
    needed: int = 0
    available: int = 0


class Seat(Value):
    """Where one container of one replica runs, and what it holds there.

    Attributes:
        replica: Number of the replica, from 0.
        role: Part that the container plays in its replica.
        host: Name of the host.
        runtime: What starts it there.
        accelerator_type: `cuda`, `rocm`, ...; `cpu` without accelerators.
        accelerators: Indexes, ascending.
        accelerator_bytes: Bytes claimed of each of them, in the same order.
        ram_bytes: Bytes of RAM claimed; on CPU also the limit.
        port: Port on which it serves.
        utilization: Share of each accelerator's memory that the engine may take.
        reason: Why here, with numbers.
    """

    replica: int
    role: Role = Role.LEADER
    host: str
    runtime: RuntimeName
    accelerator_type: str = CPU
    accelerators: tuple[int, ...] = ()
    accelerator_bytes: tuple[int, ...] = ()
    ram_bytes: int = 0
    port: int
    utilization: float = 0.0
    reason: str

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What the ledger has to reserve for this seat."""
        return (
            *(
                Claim(host=self.host, resource=Resource.ACCELERATOR, index=index, amount=amount)
                for index, amount in zip(self.accelerators, self.accelerator_bytes, strict=True)
            ),
            *(
                [Claim(host=self.host, resource=Resource.RAM, amount=self.ram_bytes)]
                if self.ram_bytes
                else []
            ),
            Claim(host=self.host, resource=Resource.PORT, index=self.port, amount=1),
        )


class Placement(Value):
    """What step `place` makes.

    Attributes:
        engine: The engine that was chosen.
        engine_origin: `user`, or `derived` when the spec says `auto`.
        engine_reason: Why this engine.
        seats: One for each container; empty when the model fits nowhere.
        verdicts: One for each host of the fleet, in fleet order (of the replica that was refused,
            or of the last one placed).
        stop_first: Release that must stop before this one can start, and why; empty = none.
    """

    engine: EngineName
    engine_origin: Origin
    engine_reason: str
    seats: tuple[Seat, ...]
    verdicts: tuple[Verdict, ...]
    stop_first: str = ""

    @property
    def fits(self) -> bool:
        """Whether every replica has its seat."""
        return bool(self.seats)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All that has to be reserved."""
        return tuple(claim for seat in self.seats for claim in seat.claims)
