"""What one replica asks of a host's RAM when its processors run the engine."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.memory import MemoryModel
from moorage.memory.need import CpuNeed
from moorage.memory.numbers import largest
from moorage.models.profile import ModelProfile
from moorage.placement.demand import Wish
from moorage.placement.engine import EngineTraits


@dataclass(frozen=True, slots=True)
class CpuAsk:
    """What is taken of the RAM.

    Attributes:
        bytes: RAM that is claimed, and the limit of a container.
        tokens: Context that is served.
        cache: Bytes of the KV cache, in whole GiB; 0 = the engine decides.
        need: What the RAM is for; None where it is only estimated.
    """

    bytes: int
    tokens: int
    cache: int = 0
    need: CpuNeed | None = None


class CpuDemand:
    """Answers for contexts, as exact as the engine allows.

    Args:
        exact: The memory model; None = there is only the engine's estimate.
        profile: The model.
        engine: The engine.
        wish: Context and concurrency that are wanted.
        stated: Bytes that the spec states; 0 = they are worked out.
    """

    def __init__(
        self,
        exact: MemoryModel | None,
        profile: ModelProfile,
        engine: EngineTraits,
        wish: Wish,
        stated: int,
    ) -> None:
        self._exact = exact if engine.reserves_cache else None
        self._profile, self._engine, self._wish, self._stated = profile, engine, wish, stated

    def least(self, ranks: int = 1) -> CpuAsk:
        """The smallest claim that serves what was asked for, on each of so many hosts."""
        return self._ask(self._wish.least_context, ranks)

    def full(self, ranks: int = 1) -> CpuAsk:
        """The claim that serves the whole context, on each of so many hosts."""
        return self._ask(self._wish.context, ranks)

    def fitted(self, budget: int, ranks: int = 1) -> CpuAsk:
        """The claim for the longest context within a budget of bytes; a stated claim is one."""
        budget = self._stated or budget
        full = self._worked_out(self._wish.context, ranks)
        if full.bytes > budget and full.need and not self._wish.stated:
            longest = largest(
                lambda n: self._worked_out(n, ranks).bytes <= budget, self._wish.context
            )
            full = self._worked_out(max(longest, self._wish.least_context), ranks)
        return CpuAsk(self._stated or full.bytes, full.tokens, full.cache, full.need)

    def _ask(self, tokens: int, ranks: int) -> CpuAsk:
        found = self._worked_out(tokens, ranks)
        return CpuAsk(self._stated, tokens, found.cache, found.need) if self._stated else found

    def _worked_out(self, tokens: int, ranks: int) -> CpuAsk:
        """An estimate does not know how ranks share a model: each counts with all of it."""
        if self._exact:
            need = self._exact.cpu_need(
                tokens=tokens, concurrency=self._wish.concurrency, ranks=ranks
            )
            if isinstance(need, CpuNeed):
                return CpuAsk(need.ram, tokens, need.cache_bytes, need)
        ram, cache = self._engine.ram_on_cpu(self._profile)
        return CpuAsk(ram, tokens, cache)
