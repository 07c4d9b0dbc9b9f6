"""The memory of a model under the options of its spec, on accelerators and on CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB
from moorage.memory.draft import draft_need
from moorage.memory.dtypes import is_checkpoints, quantisation_method
from moorage.memory.engine_setup import EngineSetup, setup_on_accelerator, setup_on_cpu
from moorage.memory.estimates import activation, outer_terms, step_terms
from moorage.memory.exact import Pool, RankWeights, Scale, exact_terms, pool_for, with_states
from moorage.memory.facts import ALIASES
from moorage.memory.mxfp4 import kernel_for
from moorage.memory.need import Batch, CpuNeed, MemoryQuery, Need, Term
from moorage.memory.options import MemoryOptions
from moorage.memory.refusal import caught, unknown
from moorage.memory.stated_options import for_sglang, memory_options
from moorage.memory.weights import vocabulary_rows
from moorage.models.config import TEXT_CONFIG_KEYS, Config
from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel, TensorHeader, WeightSummary
from moorage.spec import ModelSpec

PROCESSES = 5 * GIB // 2
"""RAM of vLLM's own processes on CPU; measured 1.6 to 2.5 GiB with page cache.

The kernel charges files read at the first start to the container, and vLLM counts them as used: on
a machine that had just pulled the image, 2 GiB left no room for the key/value cache.
"""


VOCABULARY = frozenset(("vocab_size", *ALIASES["vocab_size"]))
"""Keys of the size of the vocabulary."""


class MemoryModel:
    """The memory of one model under one set of options; it caches its results.

    A plain class, because Prefect visits every value and collection that is passed to a
    task, and a model may have 100,000 tensor headers.

    Args:
        headers: Headers of the checkpoint; empty if its format has none.
        files: Facts of the weight files, used if there are no headers.
    """

    def __init__(
        self,
        config: Config,
        headers: Mapping[str, TensorHeader],
        options: MemoryOptions,
        *,
        files: WeightSummary | None = None,
        draft: ResolvedModel | None = None,
    ) -> None:
        self.options = options
        self.config = _with_vocabulary(options.apply_to(config), headers)
        self._scale = Scale(self.config, headers, files, options)
        self._draft = draft
        self._source = (config, headers, files)
        self._needs: dict[tuple[Batch, MemoryQuery], Need | Refusal] = {}

    def with_options(self, **changes: Any) -> MemoryModel:
        """The same model under other options, named as the fields of `MemoryOptions`."""
        config, headers, files = self._source
        options = self.options.model_copy(update=changes)
        return MemoryModel(config, headers, options, files=files, draft=self._draft)

    def of_sglang(self) -> MemoryModel:
        """The same model in SGLang, which a spec without an engine may come to."""
        if self.options.sglang:
            return self
        return self.with_options(**for_sglang(self.options))

    def need(self, query: MemoryQuery) -> Need | Refusal:
        """The memory that one rank needs, on the pipeline stage that needs most."""
        setup = caught(lambda: setup_on_accelerator(self.config, self.options, query))
        if isinstance(setup, Refusal):
            return setup
        # Accelerators with the same batch and kernels share the result.
        kernel = caught(lambda: kernel_for(setup.facts, query))
        if isinstance(kernel, Refusal):
            return kernel
        key = (setup.batch, replace(query, total=0, device_name=kernel))
        if key not in self._needs:
            self._needs[key] = caught(lambda: self._need(setup))
        return self._needs[key]

    def cpu_need(self, *, tokens: int, concurrency: int = 1, ranks: int = 1) -> CpuNeed | Refusal:
        """The RAM that vLLM needs on CPU, with one tensor-parallel rank on each host."""
        query = MemoryQuery(
            total=0, tokens=tokens, device_type="cpu", tensor=ranks, concurrency=concurrency
        )
        return caught(lambda: self._cpu_need(query))

    def _need(self, setup: EngineSetup) -> Need:
        claim, query = self.options.stated.claim, setup.query
        pool, terms = None, tuple(outer_terms(self.options, query.ranks * setup.copies))
        try:
            weighed, pool = self._exact(setup)
            setup, pool = with_states(setup, pool)
            draft = draft_need(setup, self._draft, pool, weighed)
            terms = (
                *exact_terms(weighed, pool, self.options),
                *([draft.term(draft.weights + draft.cache)] if draft else []),
                *step_terms(setup, caches=any(pool.stages)),
                *terms,
            )
        except Refusal as refusal:
            if claim is None or refusal.reason is Reason.REJECTED:
                raise
        stated = None if claim is None else int(claim)
        cache = pool.prediction if pool else None
        return Need.for_query(query, terms, batch=setup.batch, stated=stated, cache=cache)

    def _cpu_need(self, query: MemoryQuery) -> CpuNeed:
        """The need on CPU, where vLLM takes the KV cache in whole GiB instead of a utilization."""
        setup = setup_on_cpu(self.config, self.options, query)
        weighed, pool = self._exact(setup)
        draft = draft_need(setup, self._draft, pool, weighed)
        wanted = pool.stages[0] + (draft.cache if draft else 0)
        cache = -(-wanted // GIB) * GIB
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
                pool.term(cache, f"{why_cache}, whole GiB"),
                *adapters,
                *([draft.term(draft.weights)] if draft else []),
                Term.estimate("activation", peak, why_peak),
                Term.estimate("processes", PROCESSES, "the engine's own processes"),
            ),
        )

    def _exact(self, setup: EngineSetup) -> tuple[RankWeights, Pool]:
        """Weights and KV cache by the rules.

        With options that the rules do not cover, what vLLM refuses is still refused.

        Raises:
            Refusal: When vLLM would not start, or the rules do not cover the model or its options.
        """
        options, own_method = self.options, quantisation_method(setup.facts)
        other = options.quantization and not is_checkpoints(options.quantization, own_method)
        uncovered = options.uncovered or (f"--quantization {options.quantization}" if other else "")
        if options.attention_copies:  # the rules would divide its heads among all ranks
            raise unknown(f"{uncovered}; `memory.claim` states the bytes")
        pool = pool_for(setup)
        # Where quantised layers can be cut depends on the method, which the user may state.
        weighed = None if other and own_method else self._scale.weigh(setup.query)
        if weighed is None or uncovered:
            raise unknown(f"{uncovered}; `memory.claim` states the bytes")
        return weighed, pool


def _with_vocabulary(config: Config, headers: Mapping[str, TensorHeader]) -> Config:
    """The configuration, with a size of the vocabulary where it says none, as Gemma 3's do."""
    parts = (config, *(config.get(key) for key in TEXT_CONFIG_KEYS))
    stated = any(VOCABULARY.intersection(part) for part in parts if isinstance(part, Mapping))
    rows = 0 if stated else vocabulary_rows(headers)
    return {**config, "vocab_size": rows} if rows else config


def memory_model(spec: ModelSpec, model: ResolvedModel, profile: ModelProfile) -> MemoryModel:
    """The memory model of a resolved model under its spec.

    Raises:
        Failure: `BAD_SPEC` when an engine argument is malformed.
    """
    options = memory_options(spec, profile.mode, model.companions)
    draft = model.draft
    return MemoryModel(model.config, model.headers, options, files=model.weights, draft=draft)
