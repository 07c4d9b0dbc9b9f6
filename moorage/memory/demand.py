"""The memory of a model under the options of its spec, on accelerators and on CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB
from moorage.memory.batch import Batch, cuts_prompts, on_accelerator, without_accelerator
from moorage.memory.draft import Draft, DraftNeed, draft_need, draft_of, draft_terms
from moorage.memory.estimates import Shape, Term, activation, inner_terms, outer_terms
from moorage.memory.exact import Scale, Weighed, exact_terms, pool_for
from moorage.memory.need import CpuNeed, Need
from moorage.memory.numbers import largest
from moorage.memory.options import MemoryOptions
from moorage.memory.refusal import caught, unknown
from moorage.memory.spec_options import memory_options
from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel, WeightSummary
from moorage.models.tensors import TensorHeader
from moorage.spec import ModelSpec

BLOCK = 128
"""Tokens of a KV block on CPU (`platforms/cpu.py`)."""

PROCESSES = 5 * GIB // 2
"""RAM of vLLM's own processes on CPU; measured 1.6 to 2.5 GiB with page cache.

The kernel charges the files that a first start reads to the container, and vLLM counts them as
used: on a machine that has just got the image, 2 GiB left no room for the key/value cache.
"""


def on_cpu(
    config: Mapping[str, Any],
    options: MemoryOptions,
    weighed: Weighed,
    tokens: int,
    concurrency: int,
    processes: int,
    draft: Draft | None = None,
    ranks: int = 1,
) -> CpuNeed:
    """Count the RAM. There is no utilization: the KV cache is given in whole GiB.

    Args:
        config: Configuration as the engine sees it.
        options: What the spec says.
        weighed: The weights.
        tokens: Longest request.
        concurrency: Requests of that length that the KV cache holds at once.
        processes: Bytes that the engine's processes take themselves.
        draft: The draft model, where one is used and was read.
        ranks: Tensor-parallel ranks, one on each host.

    Raises:
        Refusal: When the rules do not cover the model, or vLLM refuses the settings.
    """
    batch = without_accelerator(options, ranks, tokens, cuts_prompts(config, options))
    pool = pool_for(
        config,
        options,
        tensor=ranks,
        pipeline=1,
        tokens=tokens,
        batched=batch.tokens,
        concurrency=concurrency,
        block=BLOCK,
    )
    drafted = draft_need(options, draft, pool, batch, ranks, concurrency, BLOCK)
    cache = pool.stages[0] + (drafted.cache if drafted else 0)
    whole = -(-cache // GIB) * GIB
    peak, why = activation(Shape.of(config, options, batch, ranks, any(pool.stages)))
    weights, _, *adapters = exact_terms(weighed, pool, options)
    own = "the engine's own processes"
    why_cache = pool.reason(0) + ", the draft model's too" * bool(drafted and drafted.cache)
    return CpuNeed(
        tokens=tokens,
        concurrency=concurrency,
        batch=batch,
        cache_bytes=whole,
        terms=(
            weights,
            Term(name="kv_cache", bytes=whole, exact=True, reason=f"{why_cache}, whole GiB"),
            *adapters,
            *_draft_weights(drafted),
            Term(name="activation", bytes=peak, exact=False, reason=why),
            Term(name="processes", bytes=processes, exact=False, reason=own),
        ),
    )


def _draft_weights(need: DraftNeed | None) -> tuple[Term, ...]:
    if need is None:
        return ()
    return (Term(name="draft", bytes=need.weights, exact=False, reason=need.reason),)


Key = tuple[Batch, int, int, int, int]


class MemoryModel:
    """The memory of one model under one set of options; it caches its results.

    A plain class, because Prefect visits every value and collection that is passed to a
    task, and a model may have 100,000 tensor headers.

    Args:
        config: Content of config.json.
        headers: Headers of the checkpoint; empty where its format has none.
        options: What the spec says.
        files: Facts of the weight files; used where there are no headers.
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
        self._source = (config, headers, files, draft)
        self._needs: dict[Key, Need | Refusal] = {}

    def with_options(self, **changes: Any) -> MemoryModel:
        """The same model under other options, named as the fields of `MemoryOptions`."""
        config, headers, files, draft = self._source
        options = self.options.model_copy(update=changes)
        return MemoryModel(config, headers, options, files=files, draft=draft)

    def need(
        self,
        *,
        total: int,
        device_name: str = "",
        tensor: int = 1,
        pipeline: int = 1,
        tokens: int,
        concurrency: int = 1,
    ) -> Need | Refusal:
        """What one rank needs, on the pipeline stage that needs most.

        Args:
            total: Bytes of the accelerator's memory; vLLM schedules more at once on a larger one.
            device_name: The accelerator's name.
            tensor: Tensor-parallel ranks.
            pipeline: Pipeline stages.
            tokens: Longest request (`max_model_len`).
            concurrency: Requests of that length that the KV cache holds at once.
        """
        cuts = caught(lambda: cuts_prompts(self.config, self.options))
        if isinstance(cuts, Refusal):
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
            return not isinstance(need, Refusal) and need.fits(total, budget)

        return largest(fits, at_most)

    def weights(self, tensor: int = 1, pipeline: int = 1) -> int | Refusal:
        """Bytes of the parameters on one rank of the heaviest pipeline stage."""
        return caught(lambda: max(self._scale.weigh(tensor, pipeline).stages))

    def cpu_need(
        self, *, tokens: int, concurrency: int = 1, processes: int = PROCESSES, ranks: int = 1
    ) -> CpuNeed | Refusal:
        """What vLLM needs of a host's RAM when it runs on CPU, one rank on each host.

        Args:
            tokens: Longest request.
            concurrency: Requests of that length that the KV cache holds at once.
            processes: Bytes that the engine's processes take themselves.
            ranks: Tensor-parallel ranks, one on each host.
        """

        def count() -> CpuNeed:
            self._require_covered()
            weighed = self._scale.weigh(ranks, 1)
            return on_cpu(
                self.config,
                self.options,
                weighed,
                tokens,
                concurrency,
                processes,
                self._draft,
                ranks,
            )

        return caught(count)

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
            shape = Shape.of(self.config, self.options, batch, tensor, any(pool.stages))
            draft = draft_terms(self.options, self._draft, pool, batch, tensor, concurrency)
            terms = (*exact_terms(weighed, pool, self.options), *draft, *inner_terms(shape), *terms)
        except Refusal as refused:
            if claim is None or refused.reason is Reason.REJECTED:
                raise
        return Need(
            tokens=tokens,
            concurrency=concurrency,
            tensor_parallel_size=tensor,
            pipeline_parallel_size=pipeline,
            batch=batch,
            terms=terms,
            stated=None if claim is None else int(claim),
            cache=pool.prediction if pool else None,
        )

    def _require_covered(self) -> None:
        if self.options.uncovered:
            raise unknown(f"{self.options.uncovered}; `memory.claim` states the bytes")


def memory_model(spec: ModelSpec, model: ResolvedModel, profile: ModelProfile) -> MemoryModel:
    """The memory of a resolved model, as its spec wants it served.

    Raises:
        Failure: `BAD_SPEC` when an engine argument is malformed.
    """
    options = memory_options(spec, profile.mode, model.companions)
    return MemoryModel(
        model.config, model.headers, options, files=model.weights, draft=draft_of(model)
    )
