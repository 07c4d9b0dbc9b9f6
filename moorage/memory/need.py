"""A query to a memory model, and its answers: the exact prediction and the need of one rank."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from moorage.common.values import Value

DESCRIBED = "0.32.0"
"""Version of vLLM whose accounting the rules in `moorage.memory` follow."""


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """A query to a memory model.

    Attributes:
        total: Bytes of the accelerator's memory; vLLM uses larger batches on larger accelerators.
        tokens: Longest request (`max_model_len`).
        device_name: The accelerator's name, on which batches and kernels of vLLM depend.
        device_type: The accelerator's type, such as `cuda` or `rocm`.
        versions: Versions of vLLM that may run, "" = unknown; none = another engine.
        data: Copies of the model among which its experts are divided.
        concurrency: Requests of that length that the KV cache holds at once.
    """

    total: int
    tokens: int
    device_name: str = ""
    device_type: str = "cuda"
    versions: tuple[str, ...] = (DESCRIBED,)
    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    concurrency: int = 1

    @property
    def ranks(self) -> int:
        """Accelerators that share one copy of the model."""
        return self.tensor * self.pipeline


class Batch(Value):
    """One scheduler step: `max_num_batched_tokens` and `max_num_seqs`."""

    tokens: int
    seqs: int


class Term(Value):
    """One part of the memory of one accelerator.

    Attributes:
        name: `weights`, `kv_cache`, `lora`, `draft`, `activation`, `cuda_graphs`,
            `graph_reserve`, `buffers`, `redundancy`, `sampling`, `request_table`, `context`,
            `nccl`, `server`, `stated`; on CPU also `processes` and `prompt_cache`.
        exact: Whether it follows from the engine's own accounting; else it is estimated or stated.
        inside: Whether it counts within `--gpu-memory-utilization`.
        reason: The formula with its numbers.
    """

    name: str
    bytes: int
    exact: bool
    inside: bool = True
    reason: str

    @classmethod
    def estimate(cls, name: str, size: int, reason: str, *, inside: bool = True) -> Term:
        """A term that is estimated or stated."""
        return cls(name=name, bytes=size, exact=False, inside=inside, reason=reason)


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
        bytes_per_block: Bytes that one block id costs on this stage; 0 without a KV cache.
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
        block_size: Tokens of a block of the attention groups; the usual size if there are only
            recurrent states; None without a cache.
        bytes_per_block: Cost of one block id, in the costliest stage.
        blocks_per_full_request: Block ids of one full request, summed over the groups.
        full_request_bytes: The product `bytes_per_block` x `blocks_per_full_request`.
        num_blocks: Blocks of the pool, in the smallest stage.
        concurrency: Full requests that the pool holds at once.
        max_fit_len: Longest single request that fits, up to `max_model_len`.
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
"""Steps of a share of an accelerator: thousandths."""


class Need(Value):
    """The memory that one rank needs, on the pipeline stage that needs most.

    Attributes:
        batch: The scheduler step that the terms assume.
        stated: Total bytes that the spec states; None = not stated.
        cache: The exact prediction of the KV cache; None if the rules do not cover the model.
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
        """The need for a query; the batch defaults to the query's requests."""
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
        """Bytes on top of `--gpu-memory-utilization`."""
        return sum(term.bytes for term in self.terms if not term.inside)

    def term(self, name: str) -> Term | None:
        """The term of that name; None = there is none."""
        return next((term for term in self.terms if term.name == name), None)

    def utilization(self, total: int) -> float:
        """The smallest share of `total` bytes, in thousandths, that gives the engine its budget.

        vLLM takes `ceil(total x share)`. With a stated claim, the budget is the claim minus the
        bytes outside. The share exceeds 1 if the accelerator is too small.
        """
        if self.stated is not None:
            return max(1, (self.stated - self.outside) * STEPS // total) / STEPS
        steps = max(1, self.inside * STEPS // total - 1)
        while ceil(total * (steps / STEPS)) < self.inside:
            steps += 1
        return steps / STEPS

    def claim(self, total: int) -> int:
        """Bytes to claim of an accelerator with `total` bytes, those outside the share included."""
        if self.stated is not None:
            return self.stated
        return ceil(total * self.utilization(total)) + self.outside

    def fits(self, total: int, budget: int) -> bool:
        """Whether the claim is within a budget of bytes, and the terms within a stated claim."""
        within = self.stated is None or self.inside + self.outside <= self.stated
        return within and self.claim(total) <= budget


class CpuNeed(Value):
    """The RAM of one engine on CPU; `cache_bytes` of it are the KV cache, whole GiB for vLLM."""

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
    """Binary search for the largest number from 1 to `at_most` that fits; 0 = none fits.

    `fits` must be monotonic: if a number fits, every smaller one fits too. `at_most` < 2**63.
    """
    return bisect_left(range(1, at_most + 1), True, key=lambda number: not fits(number))
