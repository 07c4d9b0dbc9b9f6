"""One way to seat a replica: which accelerators of which hosts, and what it takes of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """What a replica takes of one host.

    Attributes:
        host: Name of the host.
        accelerators: Indexes, ascending.
        accelerator_bytes: Bytes taken of each of them, in the same order.
        ram_bytes: Bytes of RAM taken; 0 = none.
    """

    host: str
    accelerators: tuple[int, ...]
    accelerator_bytes: tuple[int, ...]
    ram_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One seat for a whole replica.

    Attributes:
        accelerator_type: `cuda`, `rocm`, ...; one type for all shares.
        leader: Where the replica answers.
        followers: The other hosts of the replica, in the order in which they were taken.
        overcommit: Whether it takes more than there is; only accelerators that a person named.
    """

    accelerator_type: str
    leader: Share
    followers: tuple[Share, ...] = ()
    overcommit: bool = False

    @property
    def shares(self) -> tuple[Share, ...]:
        """Every share, the leader's first."""
        return (self.leader, *self.followers)
