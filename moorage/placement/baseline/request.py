"""Everything that a baseline decision needs to know of a model and of what the user wants."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from moorage.common.units import GIB
from moorage.placement.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates of a strategy.

    Attributes:
        candidates: In fleet order; empty = nothing fits this way.
        lines: Why nothing fits, or what is wrong with what does; empty = the strategy did not look.
    """

    candidates: tuple[Candidate, ...] = ()
    lines: tuple[str, ...] = ()


def gib(amount: float) -> str:
    """Bytes as GiB with two decimals."""
    return f"{amount / GIB:.2f} GiB"


class Strategy(StrEnum):
    """Which candidate is the best one."""

    SPREAD = "spread"
    """Where the fewest replicas run, of this model first."""

    BINPACK = "binpack"
    """Where it fills the most of what is left."""


@dataclass(frozen=True, slots=True)
class ManualAccelerator:
    """One accelerator that the user named."""

    host: str
    type: str
    index: int


@dataclass(frozen=True, slots=True)
class CacheInRam:
    """KV cache that is extended into RAM.

    Attributes:
        enabled: Off means as if it were not there.
        size: Its bytes on every host; 0 or None = by ratio.
        ratio: Its size relative to the accelerator memory taken on a host.
    """

    enabled: bool = True
    size: int | None = None
    ratio: float | None = 1.2


@dataclass(frozen=True, slots=True)
class BaselineRequest:
    """One replica to place.

    Attributes:
        weight_bytes: Bytes of the weight files; None (not found out) counts as 0.
        lora_bytes: Bytes of the adapters.
        claim_override: Bytes to claim instead of the estimate; None = estimate.
        categories: What the model is, such as `llm` or `embedding`; empty = unknown, taken as llm.
        architectures: Of its configuration.
        attention_heads: Heads that tensor parallelism splits; None = not checked.
        vision_heads: Heads of the vision tower; None = not checked.
        vocabulary: Tokens of the vocabulary; None = not checked.
        parameters: Options for the engine as the user wrote them, entry by entry.
        engine_version: As the user wrote it; `-custom` in it marks an image of his own.
        manual: Accelerators that the user named; empty = any.
        accelerators_per_replica: How many of the named ones a replica takes; 0 or None = all.
        count_checked: Whether they have to agree with the parallel sizes.
        replicas: Replicas of the model in all.
        distributed_allowed: Whether a replica may span hosts when the user named none.
        cache_in_ram: KV cache extended into RAM; None = off.
        strategy: Which candidate is the best one.
    """

    weight_bytes: int | None
    lora_bytes: int = 0
    claim_override: int | None = None
    categories: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    attention_heads: int | None = None
    vision_heads: int | None = None
    vocabulary: int | None = None
    parameters: tuple[str, ...] = ()
    engine_version: str | None = None
    manual: tuple[ManualAccelerator, ...] = ()
    accelerators_per_replica: int | None = None
    count_checked: bool = True
    replicas: int = 1
    distributed_allowed: bool = True
    cache_in_ram: CacheInRam | None = None
    strategy: Strategy = Strategy.SPREAD
