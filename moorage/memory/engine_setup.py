"""The settings of the engine whose memory is computed, with the size of its scheduler step.

Source, for the server: `engine/arg_utils.py`: `get_batch_defaults` and
`_set_default_max_num_seqs_and_batched_tokens_args`.
"""

from dataclasses import dataclass
from functools import cached_property

from moorage.common.units import GIB
from moorage.common.versions import at_least
from moorage.memory.dtypes import pools
from moorage.memory.facts import Facts
from moorage.memory.layers import is_bidirectional
from moorage.memory.need import Batch, MemoryQuery
from moorage.memory.option_names import HYBRID_CONNECTORS, HYBRID_SINCE, LMCACHE, LMCACHE_TYPES
from moorage.memory.options import CacheOptions, MemoryOptions, MemorySettings
from moorage.models.config import Config, text_config

CPU_TOKENS, CPU_SEQS = 2048, 128
"""Default size of a scheduler step on CPU, for each rank."""

WHOLE_ITEM = 32 * (70 + 2 + 6)
"""Least tokens of a step of a Gemma 4 that sees pictures whole: 32 frames of a video.

Source: `gemma4_mm.py:get_mm_max_tokens_per_item`; `platforms/cuda.py` cuts no such item.
"""

WHOLE_PROMPTS = 16_384
"""Tokens of a step of SGLang that does not cut prompts (`--max-prefill-tokens`)."""

CPU_BLOCK = 128
"""Tokens of a KV block on CPU (`platforms/cpu.py`)."""


@dataclass(frozen=True)
class EngineSetup:
    """The settings of one engine.

    Attributes:
        config: Configuration as the engine sees it.
        block: Tokens of a KV block if the options leave it open; None = vLLM's default on CUDA.
    """

    config: Config
    options: MemoryOptions
    batch: Batch
    query: MemoryQuery
    block: int | None = None

    @cached_property
    def facts(self) -> Facts:
        """The facts of the model."""
        return Facts(self.config)

    @property
    def pools(self) -> bool:
        """Whether the engine pools, and so needs no logits."""
        return pools(self.facts, self.options.runner)

    @property
    def copies(self) -> int:
        """Copies of the model that run in step, as they share experts; dense ones are apart."""
        return self.query.data if self.facts.experts else 1

    def settings(self, pipeline: int = 0) -> MemorySettings:
        """The settings for the exact rules; by default with the query's pipeline stages.

        Layers that the user spreads over stages are those of the model, not of its draft.
        """
        shared = {name: getattr(self.options, name) for name in CacheOptions.model_fields}
        return MemorySettings(
            **shared
            | {"block_size": self.options.block_size or self.block}
            | {"hybrid_kv_cache_manager": self._keeps_hybrid}
            | ({"layer_partition": ()} if pipeline else {})
            | {"special_kernel": self.options.special_kernel or self.options.lora is not None},
            tensor_parallel_size=self.query.tensor,
            pipeline_parallel_size=pipeline or self.query.pipeline,
            data_parallel_size=self.query.data,
            max_model_len=self.query.tokens,
            max_num_batched_tokens=self.batch.tokens,
            versions=self.query.versions,
            device_type=self.query.device_type,
            device_name=self.query.device_name,
        )

    @property
    def _keeps_hybrid(self) -> bool:
        """Whether vLLM leaves its hybrid manager on; a KV connector may turn it off."""
        names = set(self.options.connectors)
        if self.query.device_type not in LMCACHE_TYPES:
            names -= {LMCACHE}
        older = any(one and not at_least(one, HYBRID_SINCE) for one in self.query.versions)
        kept = not names or (names <= HYBRID_CONNECTORS and not older)
        return kept and self.options.hybrid_kv_cache_manager


def setup_on_accelerator(config: Config, options: MemoryOptions, query: MemoryQuery) -> EngineSetup:
    """The settings of the engine on an accelerator.

    Raises:
        Refusal: When the configuration names no architecture.
    """
    if query.total >= 160 * GIB:
        default = Batch(tokens=16_384, seqs=1024)
    elif query.total >= 70 * GIB and "a100" not in query.device_name.lower():
        default = Batch(tokens=8192, seqs=1024)
    else:
        default = Batch(tokens=2048, seqs=256)
    return EngineSetup(config, options, _batch(config, options, default, query), query)


def setup_on_cpu(config: Config, options: MemoryOptions, query: MemoryQuery) -> EngineSetup:
    """The settings of the engine on CPU, with one rank on each host."""
    default = Batch(tokens=CPU_TOKENS * query.tensor, seqs=CPU_SEQS * query.tensor)
    batch = _batch(config, options, default, query)
    return EngineSetup(config, options, batch, query, CPU_BLOCK)


def _batch(config: Config, options: MemoryOptions, default: Batch, query: MemoryQuery) -> Batch:
    length = query.tokens
    factor = 2 if options.throughput else 1
    cuts = _cuts_prompts(config, options)
    seqs = options.max_seqs or default.seqs * factor
    tokens = options.batched_tokens
    if not tokens:
        tokens = default.tokens * factor
        if not cuts:
            tokens = max(length, WHOLE_PROMPTS if options.sglang else tokens)
        tokens = max(tokens, _whole_item(config, options) if query.versions else 0)
        tokens = min(tokens, seqs * length)
    return Batch(tokens=tokens, seqs=options.max_seqs or min(seqs, tokens))


def _whole_item(config: Config, options: MemoryOptions) -> int:
    """Tokens of a picture, sound or video that must fit in one step; 0 = any may be cut."""
    is_whole = text_config(config).get("use_bidirectional_attention") == "vision"
    kind = str(config.get("model_type") or "")
    sees = kind.startswith("gemma4") and bool(config.get("vision_config"))
    without = options.language_model_only or "video" in options.absent
    return WHOLE_ITEM if sees and is_whole and not without else 0


def _cuts_prompts(config: Config, options: MemoryOptions) -> bool:
    """Whether long prompts are cut into steps (chunked prefill).

    Source: `config/model.py:is_chunked_prefill_supported`. Pooling over all tokens of a prompt is
    not distinguished, because the configuration does not show it.
    """
    if options.chunked_prefill is not None:
        return options.chunked_prefill
    facts = Facts(config)
    return not is_bidirectional(facts) and not facts.get("is_encoder_decoder")
