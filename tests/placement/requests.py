"""Requests for placement tests: memory with sizes that a test states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import HostSnapshot
from moorage.memory.gguf import GgufMemory
from moorage.memory.gguf_header import GgufHeader
from moorage.memory.need import Batch, MemoryQuery, Need, Term
from moorage.models.profile import ModelProfile
from moorage.placement.demand import Demand, Subject
from moorage.placement.engine import EngineTraits
from moorage.placement.memory import Memory
from moorage.placement.placement import Placement
from moorage.placement.propose import place
from moorage.placement.request import Request, request_for
from moorage.placement.view import HostView, views_of
from moorage.spec import EngineName, ModelSpec
from moorage.spec.arguments import parse_words
from tests.builders import a_fleet, a_profile, a_spec

Size = Callable[[int, int, int], int]
"""Bytes inside the engine's budget by tokens, tensor ranks and pipeline stages."""


class StatedSizes:
    """Memory that takes what a function says, and refuses what it says nothing of."""

    def __init__(self, size: Size, outside: int = 0, stated: int | None = None) -> None:
        self._size, self._outside, self._stated = size, outside, stated

    def __call__(self, query: MemoryQuery) -> Need | Refusal:
        """What one accelerator has to give."""
        size = self._size(query.tokens * query.concurrency, query.tensor, query.pipeline)
        if not size:
            return Refusal(Reason.REJECTED, "the engine would not start")
        parts = (("weights", size, True), ("context", self._outside, False))
        terms = tuple(
            Term(name=name, bytes=part, exact=True, inside=inside, reason="in advance")
            for name, part, inside in parts
        )
        batch = Batch(tokens=2048, seqs=256)
        return Need.for_query(query, terms, batch=batch, stated=self._stated)


def a_request(
    spec: ModelSpec | None = None,
    profile: ModelProfile | None = None,
    engine: EngineTraits | None = None,
    memory: Memory | None = None,
    **subject: Any,
) -> Request:
    """A request of a model of 8 GiB for vLLM."""
    model = Subject(spec or a_spec(), profile or a_profile(), **subject)
    request = request_for(model, engine or ENGINES[EngineName.VLLM])
    return replace(request, demand=Demand(memory, request.demand.request)) if memory else request


def a_gguf_memory(layers: int, heads: int = 32, **options: Any) -> GgufMemory:
    """The memory of a GGUF model whose layers, input and output take a GiB each."""
    sizes = {
        "block_count": layers,
        "embedding_length": 4096,
        "feed_forward_length": 14336,
        "attention.head_count": heads,
        "attention.head_count_kv": 8,
    }
    parts = {"token_embd": GIB, "output": GIB, **{f"blk.{at}": GIB for at in range(layers)}}
    header = GgufHeader(sizes, (layers + 2) * GIB, parts)
    return GgufMemory(header, parse_words(()), **options)


def on_hosts(request: Request, *hosts: HostSnapshot) -> Placement:
    """Where a request is placed."""
    return place(request, a_fleet(*hosts), Origin.USER, "requested")


def views(*hosts: HostSnapshot) -> list[HostView]:
    """Hosts as placement looks at them."""
    return views_of(hosts)
