"""What the rules of the policy `baseline` weigh: candidates with their scores."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.common.values import Value


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
class BaselineCandidate:
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


class Ranking(Value):
    """The answer of the baseline's rules for the first replica.

    Attributes:
        needed: Bytes of accelerator memory that a replica needs in all, as the rules estimate it.
        candidates: All of the first strategy that found any, in fleet order.
        scores: One for each candidate, 0 to 100.
        messages: Why nothing fits, or what is overcommitted.
    """

    needed: int
    candidates: tuple[BaselineCandidate, ...] = ()
    scores: tuple[float, ...] = ()
    messages: tuple[str, ...] = ()
