"""RAM that one replica needs where processors run the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moorage.memory.need import CpuNeed
from moorage.placement.demand import Subject
from moorage.placement.engine import EngineTraits
from moorage.placement.memory import MemoryRequest


@dataclass(frozen=True, slots=True)
class CpuAllocation:
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
    """RAM that a host has to give, by context and ranks."""

    def __init__(self, subject: Subject, engine: EngineTraits, request: MemoryRequest) -> None:
        self._exact = subject.memory if engine.reserves_cache else None
        self._profile, self._engine, self._request = subject.profile, engine, request
        ram = subject.spec.placement.ram
        self._stated = 0 if ram == "auto" else int(ram)

    def least(self, ranks: int = 1) -> CpuAllocation:
        """The smallest allocation that serves the request, on each of so many hosts."""
        return self._claimed(self._allocate(self._request.least_context, ranks))

    def full(self, ranks: int = 1) -> CpuAllocation:
        """The allocation that serves the whole context, on each of so many hosts."""
        return self._claimed(self._allocate(self._request.context, ranks))

    def fitted(self, budget: int, ranks: int = 1) -> CpuAllocation:
        """The allocation for the longest context within a budget of bytes; a stated claim is one.

        Without a prediction the context is not shortened: nobody knows what that would save.
        """
        budget = self._stated or budget

        def fits(tokens: int) -> bool:
            allocation = self._allocate(tokens, ranks)
            return allocation.need is None or allocation.bytes <= budget

        return self._claimed(self._allocate(self._request.served_context(fits), ranks))

    def _claimed(self, allocation: CpuAllocation) -> CpuAllocation:
        return replace(allocation, bytes=self._stated) if self._stated else allocation

    def _allocate(self, tokens: int, ranks: int) -> CpuAllocation:
        """An estimate does not know how ranks share a model: each counts with all of it."""
        if self._exact:
            need = self._exact.cpu_need(
                tokens=tokens, concurrency=self._request.concurrency, ranks=ranks
            )
            if isinstance(need, CpuNeed):
                return CpuAllocation(need.ram, tokens, need.cache_bytes, need)
        ram, cache = self._engine.ram_on_cpu(self._profile)
        return CpuAllocation(ram, tokens, cache)
