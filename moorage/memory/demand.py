"""The memory of a model under the options of its spec, on accelerators and on CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB
from moorage.memory.draft import Draft, draft_need, draft_of
from moorage.memory.engine_setup import (
    Batch,
    EngineSetup,
    MemoryQuery,
    setup_on_accelerator,
    setup_on_cpu,
)
from moorage.memory.estimates import Term, activation, inner_terms, outer_terms
from moorage.memory.exact import Scale, exact_terms, pool_for
from moorage.memory.need import CpuNeed, Need
from moorage.memory.numbers import largest, round_up
from moorage.memory.options import MemoryOptions
from moorage.memory.refusal import caught, unknown
from moorage.memory.spec_options import memory_options
from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel, TensorHeader, WeightSummary
from moorage.spec import ModelSpec

PROCESSES = 5 * GIB // 2
"""RAM of vLLM's own processes on CPU; measured 1.6 to 2.5 GiB with page cache.

The kernel charges the files that a first start reads to the container, and vLLM counts them as
used: on a machine that has just got the image, 2 GiB left no room for the key/value cache.
"""


WHY_PROCESSES = "the engine's own processes"


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
        self.config = options.apply_to(config)
        self._scale = Scale(self.config, headers, files, options)
        self._draft = draft
        self._source = (config, headers, files, draft)
        self._needs: dict[tuple[Batch, MemoryQuery], Need | Refusal] = {}

    def with_options(self, **changes: Any) -> MemoryModel:
        """The same model under other options, named as the fields of `MemoryOptions`."""
        config, headers, files, draft = self._source
        options = self.options.model_copy(update=changes)
        return MemoryModel(config, headers, options, files=files, draft=draft)

    def need(self, query: MemoryQuery) -> Need | Refusal:
        """What one rank needs, on the pipeline stage that needs most."""
        setup = caught(lambda: setup_on_accelerator(self.config, self.options, query))
        if isinstance(setup, Refusal):
            return setup
        # Accelerators that get the same batch share the result.
        key = (setup.batch, replace(query, total=0, device_name=""))
        if key not in self._needs:
            self._needs[key] = caught(lambda: self._need(setup))
        return self._needs[key]

    def longest(self, query: MemoryQuery, budget: int) -> int:
        """The longest context in tokens with which the engine claims no more than `budget` bytes.

        A stated claim bounds it too: the engine is given no more than that.

        Args:
            query: Its `tokens` are the longest context to consider.
            budget: Bytes that may be claimed of the accelerator.

        Returns:
            The length; 0 when not even one token fits, or nothing is known.
        """

        def fits(tokens: int) -> bool:
            need = self.need(replace(query, tokens=tokens))
            return not isinstance(need, Refusal) and need.fits(query.total, budget)

        return largest(fits, query.tokens)

    def weights(self, tensor: int = 1, pipeline: int = 1) -> int | Refusal:
        """Bytes of the parameters on one rank of the heaviest pipeline stage."""
        return caught(lambda: max(self._scale.weigh(tensor, pipeline).stages))

    def cpu_need(self, *, tokens: int, concurrency: int = 1, ranks: int = 1) -> CpuNeed | Refusal:
        """What vLLM needs of a host's RAM when it runs on CPU, one rank on each host.

        Args:
            tokens: Longest request.
            concurrency: Requests of that length that the KV cache holds at once.
            ranks: Tensor-parallel ranks, one on each host.
        """
        query = MemoryQuery(total=0, tokens=tokens, tensor=ranks, concurrency=concurrency)
        return caught(lambda: self._cpu_need(query))

    def _need(self, setup: EngineSetup) -> Need:
        claim, query = self.options.stated.claim, setup.query
        pool, terms = None, outer_terms(self.options, query.ranks)
        try:
            self._require_covered()
            weighed = self._scale.weigh(query.tensor, query.pipeline)
            pool = pool_for(setup)
            draft = draft_need(setup, self._draft, pool)
            terms = (
                *exact_terms(weighed, pool, self.options),
                *([draft.term(draft.weights + draft.cache)] if draft else []),
                *inner_terms(setup, caches=any(pool.stages)),
                *terms,
            )
        except Refusal as refusal:
            if claim is None or refusal.reason is Reason.REJECTED:
                raise
        stated = None if claim is None else int(claim)
        cache = pool.prediction if pool else None
        return Need.for_query(query, terms, batch=setup.batch, stated=stated, cache=cache)

    def _cpu_need(self, query: MemoryQuery) -> CpuNeed:
        """There is no utilization on CPU: the KV cache is given in whole GiB."""
        self._require_covered()
        weighed = self._scale.weigh(query.tensor, 1)
        setup = setup_on_cpu(self.config, self.options, query)
        pool = pool_for(setup)
        draft = draft_need(setup, self._draft, pool)
        cache = round_up(pool.stages[0] + (draft.cache if draft else 0), GIB)
        why_cache = pool.reason(0) + ", the draft model's too" * bool(draft and draft.cache)
        peak, why_peak = activation(setup)
        weights, _, *adapters = exact_terms(weighed, pool, self.options)
        return CpuNeed(
            tokens=query.tokens,
            concurrency=query.concurrency,
            batch=setup.batch,
            cache_bytes=cache,
            terms=(
                weights,
                Term(name="kv_cache", bytes=cache, exact=True, reason=f"{why_cache}, whole GiB"),
                *adapters,
                *([draft.term(draft.weights)] if draft else []),
                Term(name="activation", bytes=peak, exact=False, reason=why_peak),
                Term(name="processes", bytes=PROCESSES, exact=False, reason=WHY_PROCESSES),
            ),
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
