"""The same model, served in a way that takes less memory: what to propose when it fits nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from moorage.memory import MemoryModel
from moorage.memory.need import Need
from moorage.memory.refusal import MemoryRefusal
from moorage.placement.demand import Demand, Memory
from moorage.placement.estimated import KnownOrEstimated
from moorage.placement.request import Request

OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--kv-cache-dtype fp8", {"kv_cache_dtype": "fp8"}),
    ("--max-num-seqs 64", {"max_seqs": 64}),
    ("--max-num-batched-tokens 2048", {"batched_tokens": 2048}),
    ("--enforce-eager", {"enforce_eager": True}),
)
"""Engine arguments that save memory, the least costly first, and the options they stand for."""

CHECKPOINTS = (("FP8", 0.52), ("4 bits", 0.3))
"""Checkpoints in fewer bits: their weights as a share of 16-bit ones, scales included."""

FULL_WIDTH = ("bfloat16", "float16", "")


def other_options(request: Request, exact: MemoryModel) -> Iterator[tuple[str, Request]]:
    """The request under options that save memory, one after the other and all together."""
    together: dict[str, Any] = {}
    for argument, change in OPTIONS:
        together |= change
        yield argument, _with_memory(request, exact.with_options(**change))
    arguments = " ".join(argument for argument, _ in OPTIONS)
    yield arguments, _with_memory(request, exact.with_options(**together))


def other_checkpoints(request: Request) -> Iterator[tuple[str, Request]]:
    """The request as if the weights were stored in fewer bits: an estimate."""
    profile = request.profile
    if profile.quantization or profile.dtype not in FULL_WIDTH:
        return
    for name, share in CHECKPOINTS:
        memory = Lighter(request.demand.memory, share)
        yield name, replace(request, demand=Demand(memory, request.demand.wish))


class Lighter:
    """A memory model with lighter weights."""

    def __init__(self, memory: Memory, share: float) -> None:
        self._memory, self._share = memory, share

    def need(self, **question: Any) -> Need | MemoryRefusal:
        """What one accelerator has to give."""
        need = self._memory.need(**question)
        if isinstance(need, MemoryRefusal):
            return need
        terms = tuple(
            term.model_copy(update={"bytes": int(term.bytes * self._share), "exact": False})
            if term.name == "weights"
            else term
            for term in need.terms
        )
        return need.model_copy(update={"terms": terms})


def _with_memory(request: Request, exact: MemoryModel) -> Request:
    memory = KnownOrEstimated(exact, request.profile)
    return replace(request, demand=Demand(memory, request.demand.wish))
