"""What an engine needs of one accelerator, and the longest context that fits on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.models.memory.architectures import ENCODERS, POOLING_ENDINGS
from moorage.models.memory.batch import Batch, on_accelerator, on_cpu
from moorage.models.memory.cache import Pool, pool_for
from moorage.models.memory.draft import Draft, draft_terms
from moorage.models.memory.estimates import Shape, Term, activation, inner_terms, outer_terms
from moorage.models.memory.facts import Facts
from moorage.models.memory.need import CpuNeed, Need
from moorage.models.memory.options import MemoryOptions, memory_options
from moorage.models.memory.refusal import MemoryRefusal, RefusalKind, Refused, unknown
from moorage.models.memory.weighing import Scale, Weighed, caught
from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel, WeightSummary
from moorage.models.tensors import TensorHeader
from moorage.spec import ModelSpec
from moorage.units import GIB

CPU_BLOCK = 128
"""Tokens of a KV block on CPU (`platforms/cpu.py`)."""

CPU_PROCESSES = 2 * GIB
"""RAM of vLLM's own processes on CPU; measured 1.6 to 2.5 GiB with page cache."""


Key = tuple[Batch, int, int, int, int]


class MemoryModel:
    """The memory of one model under one set of options; it remembers what it has worked out.

    A plain class on purpose: Prefect looks into every value and collection that is passed to a
    task, and a model may have 100,000 tensor headers.

    Args:
        config: Content of config.json.
        headers: Headers of the checkpoint; empty where its format has none.
        options: What the spec says.
        files: What is known of the weight files; it stands in for headers that are not there.
        draft: The draft model, where one is used and was read.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        headers: Mapping[str, TensorHeader],
        options: MemoryOptions,
        *,
        files: WeightSummary | None = None,
        draft: Draft | None = None,
    ) -> None:
        self.options = options
        self.config = options.applied_to(config)
        self._scale = Scale(self.config, headers, files, options)
        self._draft = draft
        self._needs: dict[Key, Need | MemoryRefusal] = {}

    def need(
        self,
        *,
        total: int,
        device_name: str = "",
        tensor: int = 1,
        pipeline: int = 1,
        tokens: int,
        concurrency: int = 1,
    ) -> Need | MemoryRefusal:
        """What one rank needs, on the pipeline stage that needs most.

        Args:
            total: Bytes of the accelerator's memory; vLLM schedules more at once on a larger one.
            device_name: The accelerator's name.
            tensor: Tensor-parallel ranks.
            pipeline: Pipeline stages.
            tokens: Longest request (`max_model_len`).
            concurrency: Requests of that length that the KV cache holds at once.
        """
        cuts = caught(self._cuts)
        if isinstance(cuts, MemoryRefusal):
            return cuts
        batch = on_accelerator(self.options, total, device_name, tokens, cuts)
        key = (batch, tensor, pipeline, tokens, concurrency)
        if key not in self._needs:
            self._needs[key] = caught(lambda: self._need(*key))
        return self._needs[key]

    def longest(
        self,
        *,
        total: int,
        device_name: str = "",
        tensor: int = 1,
        pipeline: int = 1,
        budget: int,
        concurrency: int = 1,
        at_most: int,
    ) -> int:
        """The longest context in tokens with which the engine claims no more than `budget` bytes.

        A stated claim bounds it too: the engine is given no more than that.

        Args:
            total: Bytes of the accelerator's memory.
            device_name: The accelerator's name.
            tensor: Tensor-parallel ranks.
            pipeline: Pipeline stages.
            budget: Bytes that may be claimed of the accelerator.
            concurrency: Requests of that length that the KV cache holds at once.
            at_most: Longest context to consider.

        Returns:
            The length; 0 when not even one token fits, or nothing is known.
        """

        def fits(tokens: int) -> bool:
            need = self.need(
                total=total,
                device_name=device_name,
                tensor=tensor,
                pipeline=pipeline,
                tokens=tokens,
                concurrency=concurrency,
            )
            return not isinstance(need, MemoryRefusal) and need.fits(total, budget)

        low, high = 0, at_most
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        return low

    def weights(self, tensor: int = 1, pipeline: int = 1) -> int | MemoryRefusal:
        """Bytes of the parameters on one rank of the heaviest pipeline stage."""
        return caught(lambda: max(self._scale.weigh(tensor, pipeline).stages))

    def cpu_need(
        self, *, tokens: int, concurrency: int = 1, processes: int = CPU_PROCESSES
    ) -> CpuNeed | MemoryRefusal:
        """What vLLM needs of a host's RAM when it runs on CPU, on one rank.

        Args:
            tokens: Longest request.
            concurrency: Requests of that length that the KV cache holds at once.
            processes: Bytes that the engine's processes take themselves.
        """
        return caught(lambda: self._cpu_need(tokens, concurrency, processes))

    def _need(
        self, batch: Batch, tensor: int, pipeline: int, tokens: int, concurrency: int
    ) -> Need:
        claim = self.options.stated.claim
        ranks = tensor * pipeline
        pool, terms = None, outer_terms(self.options, ranks)
        try:
            self._require_covered()
            weighed = self._scale.weigh(tensor, pipeline)
            pool = pool_for(
                self.config,
                self.options,
                tensor=tensor,
                pipeline=pipeline,
                tokens=tokens,
                batched=batch.tokens,
                concurrency=concurrency,
            )
            shape = self._shape(batch, tensor, pool)
            draft = draft_terms(self.options, self._draft, pool, batch, tensor, concurrency)
            terms = (*_exact(weighed, pool, self.options), *draft, *inner_terms(shape), *terms)
        except Refused as refused:
            if claim is None or refused.refusal.kind is RefusalKind.REJECTED:
                raise
        return Need(
            tokens=tokens,
            concurrency=concurrency,
            tensor_parallel_size=tensor,
            pipeline_parallel_size=pipeline,
            batch=batch,
            terms=terms,
            stated=None if claim is None else int(claim),
            cache=pool.found if pool else None,
        )

    def _cpu_need(self, tokens: int, concurrency: int, processes: int) -> CpuNeed:
        self._require_covered()
        batch = on_cpu(self.options, 1, tokens, self._cuts())
        weighed = self._scale.weigh(1, 1)
        pool = pool_for(
            self.config,
            self.options,
            tensor=1,
            pipeline=1,
            tokens=tokens,
            batched=batch.tokens,
            concurrency=concurrency,
            block=CPU_BLOCK,
        )
        whole = -(-pool.stages[0] // GIB) * GIB
        peak, why = activation(self._shape(batch, 1, pool))
        weights, _, *adapters = _exact(weighed, pool, self.options)
        own = "the engine's own processes"
        return CpuNeed(
            tokens=tokens,
            concurrency=concurrency,
            batch=batch,
            cache_bytes=whole,
            terms=(
                weights,
                Term(
                    name="kv_cache", bytes=whole, exact=True, reason=f"{pool.reason(0)}, whole GiB"
                ),
                *adapters,
                Term(name="activation", bytes=peak, exact=False, reason=why),
                Term(name="processes", bytes=processes, exact=False, reason=own),
            ),
        )

    def _shape(self, batch: Batch, tensor: int, pool: Pool) -> Shape:
        facts = Facts(self.config)
        runner = self.options.runner
        pools = runner == "pooling"
        if runner == "auto":
            pools = facts.architecture.endswith(POOLING_ENDINGS)
        return Shape(facts, self.options, batch, tensor, pools=pools, caches=any(pool.stages))

    def _cuts(self) -> bool:
        """Whether long prompts are cut. Source: `config/model.py:is_chunked_prefill_supported`."""
        if self.options.chunked_prefill is not None:
            return self.options.chunked_prefill
        facts = Facts(self.config)
        return facts.architecture not in ENCODERS and not facts.get("is_encoder_decoder")

    def _require_covered(self) -> None:
        if self.options.uncovered:
            raise unknown(f"{self.options.uncovered}; `memory.claim` states the bytes")


def memory_model(spec: ModelSpec, model: ResolvedModel, profile: ModelProfile) -> MemoryModel:
    """The memory of a resolved model, as its spec wants it served.

    Raises:
        Failure: `BAD_SPEC` when an engine argument is malformed.
    """
    options = memory_options(spec, profile.mode)
    return MemoryModel(model.config, model.headers, options, files=model.weights)


def _exact(weighed: Weighed, pool: Pool, options: MemoryOptions) -> tuple[Term, ...]:
    """Weights, KV cache and adapters of the stage that needs most of all three together."""
    together = list(map(sum, zip(weighed.stages, pool.stages, weighed.adapters, strict=True)))
    worst = together.index(max(together))
    at = f", stage {worst + 1} of {len(together)}" if len(together) > 1 else ""
    terms = [
        Term(
            name="weights",
            bytes=weighed.stages[worst],
            exact=weighed.exact,
            reason=f"{weighed.reason}{at}",
        ),
        Term(name="kv_cache", bytes=pool.stages[worst], exact=True, reason=pool.reason(worst)),
    ]
    if lora := options.lora:
        reason = f"{lora.max_loras} adapters of rank {lora.max_rank} for every target"
        terms.append(Term(name="lora", bytes=weighed.adapters[worst], exact=True, reason=reason))
    return tuple(terms)
