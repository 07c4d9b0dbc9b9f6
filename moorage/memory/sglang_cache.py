"""How SGLang 0.5.23 divides the memory of its cache among layers.

Source: `model_executor/pool_configurator.py`, `configs/model_config.py:is_hybrid_swa_model`, and
`_handle_max_mamba_cache` of `mem_cache/kv_cache_configurator.py`.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from moorage.memory.facts import Facts
from moorage.memory.kv import LOCAL, KVGroup, KVKind, LayerCache
from moorage.memory.need import Batch
from moorage.memory.options import MemorySettings
from moorage.memory.refusal import unknown

WINDOWS_APART = frozenset(
    (
        *("BeamForCausalLM", "Llama4ForConditionalGeneration", "GptOssForCausalLM"),
        *("GraniteSWAForCausalLM", "GraniteMoeSWAForCausalLM", "IQuestQ1ForCausalLM"),
        *("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM", "Step3p5ForCausalLM"),
        *("Step3p7ForConditionalGeneration", "Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"),
        *("EmbeddingGemma2Model", "Gemma4UnifiedForConditionalGeneration"),
        *("DiffusionGemmaForBlockDiffusion", "LagunaForCausalLM", "MellumForCausalLM"),
        *("MuseGlimmerForCausalLM", "MuseGlimmerForConditionalGeneration"),
        *("InklingForConditionalGeneration", "UnlimitedOCRForCausalLM"),
    )
)
"""Architectures whose window layers have a pool of their own; elsewhere they keep all tokens."""

STATES_OF_REQUEST = 5
"""Most states that one request takes of the pool, two of them to track prefixes."""


def sglang_groups(
    facts: Facts, settings: MemorySettings, caches: Sequence[LayerCache]
) -> tuple[KVGroup, ...]:
    """All attention layers as one group, with what a token in each of them costs the whole cache.

    Recurrent states are the second group; `bytes_for_states` counts them.

    Raises:
        Refusal: When requests, and not tokens, decide about the pool of windows.
    """
    states = [cache for cache in caches if cache.spec.kind is KVKind.MAMBA]
    attention = [cache for cache in caches if cache.spec.kind is not KVKind.MAMBA]
    # The states take their share of all that is left, whatever they need.
    more = 1 + settings.state_ratio if states and _caches_prefixes(settings) else 1.0
    windows = more * _window_ratio(facts, settings, attention)
    members = tuple(_as_full(cache, more, windows) for cache in attention)
    return tuple(those for those in (members, tuple(states)) if those)


def bytes_for_states(
    settings: MemorySettings, state: int, batch: Batch, concurrency: int, drafted: int, cache: int
) -> int:
    """Bytes that recurrent states take in addition to a cache of `cache` bytes.

    Args:
        state: Bytes of all states of one request on one rank.
        drafted: Tokens that a step verifies for each request; 0 = nothing drafts.
    """
    if not _caches_prefixes(settings):
        return state * (batch.seqs + 1) * (1 + drafted)
    slots = concurrency * (STATES_OF_REQUEST + drafted) + 2 + drafted
    ratio = settings.state_ratio
    return max(0, ceil(state * slots * (1 + ratio) / ratio) - cache)


def _as_full(cache: LayerCache, more: float, windows: float) -> LayerCache:
    spec = cache.spec
    local = spec.kind in LOCAL
    if local:
        spec = replace(spec, kind=KVKind.FULL, window=None)
    page = ceil(spec.page_bytes * (windows if local else more))
    return replace(cache, spec=replace(spec, page_bytes=page))


def _caches_prefixes(settings: MemorySettings) -> bool:
    return settings.enable_prefix_caching is not False


def _window_ratio(facts: Facts, settings: MemorySettings, caches: Sequence[LayerCache]) -> float:
    """Tokens of a window layer for each token of a full one."""
    local = [cache for cache in caches if cache.spec.kind in LOCAL]
    apart = facts.architecture in WINDOWS_APART or bool(facts.get("is_hybrid_swa"))
    if not apart or settings.one_pool or len(local) in (0, len(caches)):
        return 1.0
    if not _caches_prefixes(settings):
        raise unknown("without its radix cache, SGLang sizes windows by its requests")
    return settings.window_ratio
