"""The RAM that one replica needs on processors."""

from dataclasses import dataclass, replace

from moorage.memory.need import CpuNeed
from moorage.placement.demand import Subject
from moorage.placement.engine import EngineTraits
from moorage.placement.memory import MemoryRequest


@dataclass(frozen=True, slots=True)
class CpuAllocation:
    """RAM taken on one host.

    Attributes:
        bytes: RAM to claim, which is also the container's limit.
        cache: Bytes of the KV cache, in whole GiB; 0 = the engine decides.
        need: The parts of the RAM; None if it is only estimated.
    """

    bytes: int
    tokens: int
    cache: int = 0
    need: CpuNeed | None = None


class CpuDemand:
    """The RAM that each host must give, by context and ranks."""

    def __init__(self, subject: Subject, engine: EngineTraits, request: MemoryRequest) -> None:
        self._exact = subject.memory if engine.reserves_cache else None
        self._profile, self._engine, self._request = subject.profile, engine, request
        self._stated = subject.ram

    def least(self, ranks: int = 1) -> CpuAllocation:
        """The smallest allocation on each of `ranks` hosts that serves the request."""
        return self._claimed(self._allocate(self._request.least_context, ranks))

    def full(self, ranks: int = 1) -> CpuAllocation:
        """The allocation on each of `ranks` hosts that serves the whole context."""
        return self._claimed(self._allocate(self._request.context, ranks))

    def fitted(self, budget: int, ranks: int = 1) -> CpuAllocation:
        """The allocation for the longest context within a budget of bytes.

        RAM that the spec states replaces the budget. Without a prediction the context is not
        shortened, because the savings are unknown.
        """
        budget = self._stated or budget

        def fits(tokens: int) -> bool:
            allocation = self._allocate(tokens, ranks)
            return allocation.need is None or allocation.bytes <= budget

        return self._claimed(self._allocate(self._request.served_context(fits), ranks))

    def _claimed(self, allocation: CpuAllocation) -> CpuAllocation:
        return replace(allocation, bytes=self._stated) if self._stated else allocation

    def _allocate(self, tokens: int, ranks: int) -> CpuAllocation:
        """The allocation for a context; an estimate counts the whole model on each rank."""
        if self._exact:
            need = self._exact.cpu_need(
                tokens=tokens, concurrency=self._request.concurrency, ranks=ranks
            )
            if isinstance(need, CpuNeed):
                return CpuAllocation(need.ram, tokens, need.cache_bytes, need)
        ram, cache = self._engine.ram_on_cpu(self._profile)
        return CpuAllocation(ram, tokens, cache)
