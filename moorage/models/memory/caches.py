"""The KV cache of every layer: pages, block sizes, padding.

Source: `v1/kv_cache_interface.py` for the pages, `platforms/interface.py:_align_hybrid_block_size`
and `model_executor/models/config.py:MambaModelConfig` for models with a recurrent state.
"""

from __future__ import annotations

from moorage.models.memory.architectures import MLA_TYPES
from moorage.models.memory.dtypes import size_of
from moorage.models.memory.facts import Facts
from moorage.models.memory.groups import LayerCache
from moorage.models.memory.layers import Mixer, layer_mixers, window
from moorage.models.memory.numbers import divide_up
from moorage.models.memory.settings import MemorySettings
from moorage.models.memory.specs import KVKind, KVSpec
from moorage.models.memory.states import state_bytes

DEFAULT_BLOCK = 16
"""Tokens; FlashAttention on CUDA, which takes multiples of it."""

MLA_HYBRID_BLOCK = 128
"""Tokens; MLA kernels next to a state need whole kernel blocks of it."""

KINDS = {
    Mixer.FULL: KVKind.FULL,
    Mixer.SLIDING: KVKind.SLIDING,
    Mixer.CHUNKED: KVKind.CHUNKED,
    Mixer.CROSS: KVKind.CROSS,
    Mixer.STATE: KVKind.MAMBA,
}

SPLIT_HEADS = ("minicpm3",)
"""Model types with compressed weights, but a KV cache of whole heads (`minicpm3.py`)."""


def uses_mla(facts: Facts) -> bool:
    """Whether the cache holds one compressed vector for all heads."""
    return facts.model_type in MLA_TYPES and facts.get("kv_lora_rank") is not None


def token_bytes(facts: Facts, tp: int, element: int) -> int:
    """Bytes of one token in one attention layer on one rank.

    Args:
        facts: The model.
        tp: Tensor-parallel ranks; each keeps at least one head.
        element: Bytes of one element.
    """
    if uses_mla(facts):
        return (facts.whole("kv_lora_rank") + facts.whole("qk_rope_head_dim")) * element
    if facts.model_type in SPLIT_HEADS:
        size = facts.whole("qk_nope_head_dim") + facts.whole("qk_rope_head_dim")
        return max(1, facts.heads // tp) * 2 * size * element
    return max(1, facts.kv_heads // tp) * 2 * facts.head_size * element


def layer_caches(
    facts: Facts, settings: MemorySettings, dtype: str, kv_dtype: str, tokens: int, prefix: bool
) -> list[LayerCache]:
    """The caches of all layers in the order in which the model creates them.

    Args:
        facts: The model.
        settings: The engine.
        dtype: Element type of the model.
        kv_dtype: Element type of the KV cache.
        tokens: `max_model_len`.
        prefix: Whether prefixes are cached, which keeps one state more per request.
    """
    mixers = layer_mixers(facts)
    kinds = {mixer for layer in mixers for mixer in layer}
    block = settings.block_size or DEFAULT_BLOCK
    tp = settings.tensor_parallel_size
    per_token = token_bytes(facts, tp, size_of(kv_dtype)) if kinds - {Mixer.STATE} else 0
    state = 0
    if Mixer.STATE in kinds:
        state = state_bytes(facts, tp, dtype, settings.mamba_ssm_cache_dtype)
        if per_token:
            block = _hybrid_block(block, state, per_token, uses_mla(facts))
            state = block * per_token
    page = block * per_token
    specs = {mixer: _attention(facts, mixer, block, page, settings) for mixer in kinds}
    if Mixer.STATE in kinds:
        specs[Mixer.STATE] = _state(block if prefix else tokens, state, prefix)
    return [
        LayerCache(layer=index, spec=specs[mixer])
        for index, layer in enumerate(mixers)
        for mixer in layer
    ]


def _hybrid_block(block: int, state: int, per_token: int, mla: bool) -> int:
    align = max(DEFAULT_BLOCK, block)
    if mla:
        align = max(align, MLA_HYBRID_BLOCK)
    return max(block, align * divide_up(state, align * per_token))


def _state(block: int, page: int, prefix: bool) -> KVSpec:
    return KVSpec(kind=KVKind.MAMBA, block_size=block, page_bytes=page, states=2 if prefix else 1)


def _attention(
    facts: Facts, mixer: Mixer, block: int, page: int, settings: MemorySettings
) -> KVSpec:
    kind = KVKind.MLA if mixer is Mixer.FULL and uses_mla(facts) else KINDS[mixer]
    sizes = {Mixer.SLIDING: window(facts), Mixer.CHUNKED: facts.get("attention_chunk_size")}
    return KVSpec(
        kind=kind,
        block_size=block,
        page_bytes=page,
        window=sizes.get(mixer),
        # `config/scheduler.py`: max_num_encoder_input_tokens = max_num_batched_tokens.
        encoder_tokens=settings.max_num_batched_tokens if mixer is Mixer.CROSS else 0,
    )
