"""A question to a memory model, and its answers: the exact numbers, and what one rank needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from moorage.common.values import Value

DESCRIBED = "0.32.0"
"""Version of vLLM whose accounting the rules of this room follow."""


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """A question to a memory model.

    Attributes:
        total: Bytes of the accelerator's memory; vLLM schedules more at once on a larger one.
        tokens: Longest request (`max_model_len`).
        device_name: The accelerator's name; vLLM keeps batches small on an A100.
        device_type: Its type, such as `cuda` and `rocm`.
        versions: Versions of vLLM that may run, an empty one = unknown; none = another engine.
        concurrency: Requests of that length that the KV cache holds at once.
    """

    total: int
    tokens: int
    device_name: str = ""
    device_type: str = "cuda"
    versions: tuple[str, ...] = (DESCRIBED,)
    tensor: int = 1
    pipeline: int = 1
    concurrency: int = 1

    @property
    def ranks(self) -> int:
        """Accelerators that share the model."""
        return self.tensor * self.pipeline


class Batch(Value):
    """One scheduler step: `max_num_batched_tokens` and `max_num_seqs`."""

    tokens: int
    seqs: int


class Term(Value):
    """One part of the memory of one accelerator.

    Attributes:
        name: `weights`, `kv_cache`, `lora`, `draft`, `activation`, `cuda_graphs`,
            `graph_reserve`, `buffers`, `redundancy`, `sampling`, `context`, `nccl`; on CPU
            `processes`.
        exact: Whether it follows from vLLM's own accounting; else it is an estimate, or stated.
        inside: Whether it counts within `--gpu-memory-utilization`.
        reason: The formula with its numbers.
    """

    name: str
    bytes: int
    exact: bool
    inside: bool = True
    reason: str


class GroupMemory(Value):
    """Layers that share one block table.

    Attributes:
        layers: Number of layers, over all pipeline stages.
        kind: vLLM's class of the cache, such as `FullAttentionSpec`.
        block_size: Tokens of one block.
        page_bytes: Bytes of one block of one layer.
        window: Tokens that a sliding or chunked layer sees; None = all.
        blocks_per_full_request: Blocks that one request of `max_model_len` tokens takes.
    """

    layers: int
    kind: str
    block_size: int
    page_bytes: int
    window: int | None
    blocks_per_full_request: int


class StageMemory(Value):
    """One pipeline stage, on each of its ranks.

    Attributes:
        bytes_per_block: Bytes that one block id costs here; 0 without a KV cache.
        full_request_bytes: Bytes of one request of `max_model_len` tokens.
        num_blocks_alone: Blocks that its pool holds; None without a KV cache.
    """

    pp_rank: int
    layers: int
    weight_bytes: int
    bytes_per_block: int
    full_request_bytes: int
    num_blocks_alone: int | None


class MemoryPrediction(Value):
    """Weights and KV cache of one engine; all sizes in bytes per rank, all lengths in tokens.

    Attributes:
        dtype: Element type of the parameters that are not quantised.
        max_in_flight_tokens: Tokens scheduled but not yet settled, at most.
        weight_bytes_per_rank: Parameters as created, of the largest stage.
        block_size: Tokens of a block of the attention groups, or those that they would have; None
            without a cache.
        bytes_per_block: Cost of one block id, in the costliest stage.
        blocks_per_full_request: Block ids of one full request, summed over the groups.
        full_request_bytes: The product of the two above.
        num_blocks: Blocks of the pool, in the smallest stage.
        concurrency: Full requests that the pool holds at once.
        max_fit_len: Longest single request that fits, at most `max_model_len`.
        full_request_fits: Whether vLLM would start with this pool.
    """

    dtype: str
    max_model_len: int
    enable_prefix_caching: bool
    max_in_flight_tokens: int
    weight_bytes_per_rank: int
    block_size: int | None
    bytes_per_block: int
    blocks_per_full_request: int
    full_request_bytes: int
    num_blocks: int | None
    concurrency: float | None
    max_fit_len: int | None
    full_request_fits: bool
    groups: tuple[GroupMemory, ...]
    stages: tuple[StageMemory, ...]


STEPS = 1000
"""Shares of an accelerator are given in thousandths."""


class Need(Value):
    """The memory of one rank, of the pipeline stage that needs most.

    Attributes:
        batch: The scheduler step that was counted with.
        stated: Bytes that the spec states for all of it; None = nothing is stated.
        cache: What the exact rules say of the KV cache; None where they do not cover the model.
    """

    tokens: int
    concurrency: int
    tensor_parallel_size: int
    pipeline_parallel_size: int
    batch: Batch
    terms: tuple[Term, ...]
    stated: int | None = None
    cache: MemoryPrediction | None = None

    @classmethod
    def for_query(
        cls,
        query: MemoryQuery,
        terms: tuple[Term, ...],
        *,
        batch: Batch | None = None,
        stated: int | None = None,
        cache: MemoryPrediction | None = None,
    ) -> Need:
        """The answer to a query; the batch is that of the requests, if not given."""
        return cls(
            tokens=query.tokens,
            concurrency=query.concurrency,
            tensor_parallel_size=query.tensor,
            pipeline_parallel_size=query.pipeline,
            batch=batch or Batch(tokens=query.tokens, seqs=query.concurrency),
            terms=terms,
            stated=stated,
            cache=cache,
        )

    @property
    def inside(self) -> int:
        """Bytes that count within `--gpu-memory-utilization`."""
        return sum(term.bytes for term in self.terms if term.inside)

    @property
    def outside(self) -> int:
        """Bytes that come on top of it."""
        return sum(term.bytes for term in self.terms if not term.inside)

    @property
    def exact_bytes(self) -> int:
        """Bytes that follow from vLLM's own accounting."""
        return sum(term.bytes for term in self.terms if term.exact)

    @property
    def estimated_bytes(self) -> int:
        """Bytes that are estimated or stated."""
        return sum(term.bytes for term in self.terms if not term.exact)

    def term(self, name: str) -> Term | None:
        """The part of that name."""
        return next((term for term in self.terms if term.name == name), None)

    def utilization(self, total: int) -> float:
        """The smallest share of `total` bytes, in thousandths, that gives the engine its budget.

        vLLM takes `ceil(total x share)`. A stated claim gives it all but what lies outside. The
        share is above 1 when the accelerator is too small.
        """
        if self.stated is not None:
            return max(1, (self.stated - self.outside) * STEPS // total) / STEPS
        steps = max(1, self.inside * STEPS // total - 1)
        while ceil(total * (steps / STEPS)) < self.inside:
            steps += 1
        return steps / STEPS

    def claim(self, total: int) -> int:
        """Bytes that are taken of an accelerator with `total` bytes, the driver's part included."""
        if self.stated is not None:
            return self.stated
        return ceil(total * self.utilization(total)) + self.outside

    def fits(self, total: int, budget: int) -> bool:
        """Whether the claim is within a budget of bytes, and the parts within a stated claim."""
        within = self.stated is None or self.inside + self.outside <= self.stated
        return within and self.claim(total) <= budget


class CpuNeed(Value):
    """The RAM of one engine on CPU; `cache_bytes` of it, whole GiB, are passed to the engine."""

    tokens: int
    concurrency: int
    batch: Batch
    terms: tuple[Term, ...]
    cache_bytes: int

    @property
    def ram(self) -> int:
        """Bytes in all."""
        return sum(term.bytes for term in self.terms)


def largest(fits: Callable[[int], bool], at_most: int) -> int:
    """The largest number from 1 to `at_most` that fits, where a smaller one always fits too."""
    low, high = 0, at_most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
