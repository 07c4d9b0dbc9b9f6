"""The KV cache of every layer: pages, block sizes, padding.

Source: `v1/kv_cache_interface.py` for the pages, `platforms/interface.py:_align_hybrid_block_size`
and `model_executor/models/config.py:MambaModelConfig` for models with a recurrent state.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.memory.dtypes import size_of
from moorage.memory.facts import Facts
from moorage.memory.groups import LayerCache
from moorage.memory.heads import token_bytes, uses_mla
from moorage.memory.layers import layer_mixers, window
from moorage.memory.mixers import Mixer
from moorage.memory.numbers import divide_up
from moorage.memory.settings import MemorySettings
from moorage.memory.specs import KVKind, KVSpec
from moorage.memory.stages import stage_layers
from moorage.memory.states import blocks_kept, state_bytes

DEFAULT_BLOCK = 16
"""Tokens; FlashAttention on CUDA, which takes multiples of it."""

MLA_HYBRID_BLOCK = 128
"""Tokens; MLA kernels next to a state need whole kernel blocks of it."""

MODEL_DTYPE = ("falcon",)
"""Model types whose cache has the element type of the model, whatever is asked (`falcon.py`)."""

KINDS = {
    Mixer.FULL: KVKind.FULL,
    Mixer.SLIDING: KVKind.SLIDING,
    Mixer.CHUNKED: KVKind.CHUNKED,
    Mixer.CROSS: KVKind.CROSS,
    Mixer.INDEX: KVKind.MLA,
    Mixer.STATE: KVKind.MAMBA,
}


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
        prefix: Whether prefixes are cached, which keeps more states per request.
    """
    mixers = layer_mixers(facts)
    kinds = {mixer for layer in mixers for mixer in layer}
    element = size_of(dtype if facts.model_type in MODEL_DTYPE else kv_dtype)
    tp = settings.tensor_parallel_size
    per_token = {mixer: token_bytes(facts, mixer, tp, element) for mixer in kinds - {Mixer.STATE}}
    block = usual_block(settings)
    bare = None
    specs = {}
    if Mixer.STATE in kinds:
        state = state_bytes(facts, tp, dtype, settings.mamba_ssm_cache_dtype)
        kept = blocks_kept(facts, prefix)
        bare = specs[Mixer.STATE] = _state(block if prefix else tokens, state, kept)
        if usual := per_token.get(Mixer.FULL):
            block = _hybrid_block(block, state, usual, uses_mla(facts))
            specs[Mixer.STATE] = _state(block if prefix else tokens, block * usual, kept)
    for mixer, size in per_token.items():
        specs[mixer] = _attention(facts, mixer, block, block * size, settings)
    without = _layers_without_attention(mixers, settings.pipeline_parallel_size)
    return [
        LayerCache(layer=index, spec=bare if bare and index in without else specs[mixer])
        for index, layer in enumerate(mixers)
        for mixer in layer
    ]


def usual_block(settings: MemorySettings) -> int:
    """Tokens of a block of attention where no states are beside it."""
    return settings.block_size or DEFAULT_BLOCK


def _layers_without_attention(mixers: Sequence[tuple[Mixer, ...]], stages: int) -> set[int]:
    """Layers of stages with states alone, which do not grow their blocks to those of attention."""
    return {
        index
        for stage in stage_layers(len(mixers), stages)
        if set().union(*{mixers[index] for index in stage}) == {Mixer.STATE}
        for index in stage
    }


def _state(block: int, page: int, states: int) -> KVSpec:
    return KVSpec(kind=KVKind.MAMBA, block_size=block, page_bytes=page, states=states)


def _hybrid_block(block: int, state: int, per_token: int, mla: bool) -> int:
    align = max(DEFAULT_BLOCK, block)
    if mla:
        align = max(align, MLA_HYBRID_BLOCK)
    return max(block, align * divide_up(state, align * per_token))


def _attention(
    facts: Facts, mixer: Mixer, block: int, page: int, settings: MemorySettings
) -> KVSpec:
    kind = KVKind.MLA if mixer is Mixer.FULL and uses_mla(facts) else KINDS[mixer]
    sizes = {
        Mixer.SLIDING: window(facts),
        Mixer.CHUNKED: facts.number("attention_chunk_size") or None,
    }
    return KVSpec(
        kind=kind,
        block_size=block,
        page_bytes=page,
        window=sizes.get(mixer),
        # `config/scheduler.py`: max_num_encoder_input_tokens = max_num_batched_tokens.
        encoder_tokens=settings.max_num_batched_tokens if mixer is Mixer.CROSS else 0,
    )
