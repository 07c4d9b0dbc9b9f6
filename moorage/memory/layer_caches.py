"""The KV caches that the layers of a model create, and the bytes of one token in a layer.

Source: the attention constructors in `model_executor/models/`, `v1/kv_cache_interface.py` for the
pages, `platforms/interface.py:_align_hybrid_block_size` and
`model_executor/models/config.py:MambaModelConfig` for models with a recurrent state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Any

from moorage.memory.architectures import MLA_TYPES, PLAIN_CACHES
from moorage.memory.config_defaults import OTHER_VALUES, VALUES
from moorage.memory.dtypes import kv_dtype, size_of
from moorage.memory.facts import Facts
from moorage.memory.kv import KVKind, KVSpec, LayerCache
from moorage.memory.layers import (
    FULL_BY_DEFAULT,
    PERIODS,
    WHOLE_MODELS,
    WINDOW_OFF_BY_DEFAULT,
    WINDOW_PLUS_ONE,
    Mixer,
    attention_of,
    layer_mixers,
    stage_ranges,
    window,
)
from moorage.memory.options import MemorySettings
from moorage.memory.refusal import rejected, unknown
from moorage.memory.states import CHUNK, CHUNK_KEYS, ELEMENTS, state_bytes, states_kept

INDEX_SCALE_BYTES = 4
INDEX_SCALE_SPAN = 128
"""A sparse indexer keeps fp8 keys, and a float32 scale for each span of this many keys."""

PACKED_TOKEN = 656
"""Bytes of a token of sparse MLA in fp8 with its scales, on NVIDIA (`fp8_ds_mla`).

FlashInfer takes 576 on Blackwell; the larger counts.
"""


@dataclass(frozen=True)
class HeadKeys:
    """Configuration keys of the head sizes of a kind of layer; a dot leads into a mapping.

    Attributes:
        number: Key of the number of heads.
        size: Key of the elements in an attention key.
        value: Key of the elements in an attention value; empty = as many as in a key.
        gate: Key that must be true for `number` to count; else the model's number counts.
    """

    number: str
    size: str
    value: str = ""
    gate: str = ""


_GEMMA4 = HeadKeys("num_global_key_value_heads", "global_head_dim", gate="attention_k_eq_v")
_MIMO = HeadKeys("num_key_value_heads", "head_dim", "v_head_dim")
_MIMO_LOCAL = HeadKeys("swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim")
_STEP = HeadKeys("attention_other_setting.num_attention_groups", "attention_other_setting.head_dim")

HEADS: dict[tuple[str, Mixer], HeadKeys] = {
    **{(name, Mixer.FULL): _GEMMA4 for name in ("gemma4_text", "gemma4_unified_text")},
    **{(name, Mixer.FULL): _MIMO for name in ("mimo_v2_flash", "mimo_v2")},
    **{(name, Mixer.SLIDING): _MIMO_LOCAL for name in ("mimo_v2_flash", "mimo_v2")},
    ("step3p5", Mixer.SLIDING): _STEP,
}
"""Kinds of layers whose heads differ from those that the configuration gives for the model."""


DESCRIBED_TYPES = frozenset(
    (
        *(*VALUES, *OTHER_VALUES, *PLAIN_CACHES, *MLA_TYPES, *ELEMENTS),
        *(*PERIODS, *WHOLE_MODELS, *FULL_BY_DEFAULT, *WINDOW_OFF_BY_DEFAULT, *WINDOW_PLUS_ONE),
        *(model_type for model_type, _ in HEADS),
    )
)
"""Model types whose caches some rule describes; others are taken for plain ones."""


def uses_mla(facts: Facts) -> bool:
    """Whether the cache holds one compressed vector for all heads."""
    return facts.model_type in MLA_TYPES and facts.get("kv_lora_rank") is not None


def token_bytes(facts: Facts, mixer: Mixer, tp: int, element: int) -> int:
    """Bytes of one token in one layer on one of `tp` ranks, each of which keeps at least one head.

    `element` is the size of one element in bytes.
    """
    if mixer is Mixer.INDEX:
        size = facts.require("index_head_dim")
        return size + size // INDEX_SCALE_SPAN * INDEX_SCALE_BYTES
    if uses_mla(facts):
        return (facts.require("kv_lora_rank") + facts.require("qk_rope_head_dim")) * element
    if facts.model_type == "minicpm3":  # compressed weights, but a cache of whole heads
        size = facts.require("qk_nope_head_dim") + facts.require("qk_rope_head_dim")
        return max(1, facts.heads // tp) * 2 * size * element
    heads, key, value = _heads(facts, mixer)
    return max(1, heads // tp) * (key + value) * element


def kv_heads_of(facts: Facts, layer: int | None) -> int:
    """Key/value heads of one layer over all ranks; without a layer, the model's number."""
    if layer is None or facts.model_type not in {model_type for model_type, _ in HEADS}:
        return facts.kv_heads
    mixer = attention_of(facts, layer)
    return facts.kv_heads if mixer is None else _heads(facts, mixer)[0]


def _heads(facts: Facts, mixer: Mixer) -> tuple[int, int, int]:
    keys = HEADS.get((facts.model_type, mixer))
    if keys is None:
        return facts.kv_heads, facts.head_size, facts.head_size
    counts = not keys.gate or facts.get(keys.gate)
    number = _at(facts, keys.number) if counts else None
    size = _at(facts, keys.size) or facts.head_size
    value = _at(facts, keys.value) if keys.value else size
    return number or facts.kv_heads, size, value or size


def _at(facts: Facts, path: str) -> int | None:
    first, *rest = path.split(".")
    value: Any = facts.get(first)
    for key in rest:
        value = value.get(key) if isinstance(value, Mapping) else None
    if value is not None and not isinstance(value, int):
        raise unknown(f"`{path}` of the configuration is not a whole number")
    return value


DEFAULT_BLOCK = 16
"""Tokens of a block; FlashAttention on CUDA takes multiples of it."""

MLA_HYBRID_BLOCK = 128
"""Tokens of a kernel block; MLA layers next to recurrent states need a multiple of it."""

KINDS = {
    Mixer.FULL: KVKind.FULL,
    Mixer.SLIDING: KVKind.SLIDING,
    Mixer.CHUNKED: KVKind.CHUNKED,
    Mixer.CROSS: KVKind.CROSS,
    Mixer.INDEX: KVKind.MLA,
    Mixer.STATE: KVKind.MAMBA,
}


def layer_caches(
    facts: Facts, settings: MemorySettings, dtype: str, tokens: int, prefix: bool
) -> list[LayerCache]:
    """The caches of all layers in the order in which the model creates them.

    With `prefix`, prefixes are cached, so each request keeps more states. `tokens` is
    `max_model_len`.
    """
    mixers = layer_mixers(facts)
    kinds = {mixer for layer in mixers for mixer in layer}
    # `falcon.py` always uses the element type of the model.
    requested = dtype if facts.model_type == "falcon" else settings.kv_cache_dtype
    stored, tp = kv_dtype(facts, requested, dtype), settings.tensor_parallel_size
    element = size_of(stored)
    per_token = {mixer: token_bytes(facts, mixer, tp, element) for mixer in kinds - {Mixer.STATE}}
    if Mixer.INDEX in kinds and stored.startswith("fp8") and settings.device_type == "cuda":
        per_token[Mixer.FULL] = PACKED_TOKEN
    block = usual_block(settings)
    bare = None
    specs = {}
    if Mixer.STATE in kinds:
        bare = specs[Mixer.STATE] = _bare_state(facts, settings, dtype, tokens, prefix)
        usual = per_token.get(Mixer.FULL)
        if usual and not settings.sglang:  # its states have a pool of their own
            block = _block_beside(bare, facts, settings, usual)
            span = block if prefix else tokens
            specs[Mixer.STATE] = replace(bare, block_size=span, page_bytes=block * usual)
    for mixer, size in per_token.items():
        specs[mixer] = _attention(facts, mixer, block, block * size, settings)
    without = _layers_without_attention(mixers, stage_ranges(facts, settings))
    return [
        LayerCache(layer=index, spec=bare if bare and index in without else specs[mixer])
        for index, layer in enumerate(mixers)
        for mixer in layer
    ]


def _bare_state(
    facts: Facts, settings: MemorySettings, dtype: str, tokens: int, prefix: bool
) -> KVSpec:
    """The states of a layer where no attention enlarges their blocks."""
    named, stated = settings.mamba_cache_dtype, settings.mamba_block_size
    if not prefix and stated not in (None, tokens):
        raise rejected("--mamba-block-size can only be set with --enable-prefix-caching")
    size = state_bytes(
        facts,
        settings.tensor_parallel_size,
        dtype if named == "auto" else named,
        _state_dtype(facts, settings),
    )
    return KVSpec(
        kind=KVKind.MAMBA,
        block_size=(stated or usual_block(settings)) if prefix else tokens,
        page_bytes=size,
        states=states_kept(facts, settings, prefix).blocks,
    )


def _state_dtype(facts: Facts, settings: MemorySettings) -> str:
    """Element type of a recurrent state; SGLang has a default of its own.

    Source: `configs/mamba_utils.py:mamba2_state_dtype` (0.5.23).
    """
    stated = settings.mamba_ssm_cache_dtype
    if not settings.sglang or stated != "auto":
        return stated
    named = facts.get("mamba_ssm_dtype")
    return named if named in ("bfloat16", "float16") else "float32"


def usual_block(settings: MemorySettings) -> int:
    """Tokens of an attention block in a model without recurrent states."""
    return settings.block_size or DEFAULT_BLOCK


def _layers_without_attention(
    mixers: Sequence[tuple[Mixer, ...]], stages: Sequence[range]
) -> set[int]:
    """Layers on stages without attention, whose blocks are not enlarged to attention's size."""
    return {
        index
        for stage in stages
        if set().union(*{mixers[index] for index in stage}) == {Mixer.STATE}
        for index in stage
    }


def _block_beside(state: KVSpec, facts: Facts, settings: MemorySettings, per_token: int) -> int:
    """Tokens of a block of attention that holds a state; with one in each block, whole chunks."""
    block = usual_block(settings)
    align = max(DEFAULT_BLOCK, block, MLA_HYBRID_BLOCK if uses_mla(facts) else 0)
    if not state.states:
        align = lcm(settings.mamba_block_size or facts.positive(CHUNK_KEYS) or CHUNK, align)
    return max(block, align * -(-state.page_bytes // (align * per_token)))


def _attention(
    facts: Facts, mixer: Mixer, block: int, page: int, settings: MemorySettings
) -> KVSpec:
    size = None
    if mixer is Mixer.SLIDING:
        size = window(facts)
    elif mixer is Mixer.CHUNKED:
        size = facts.number("attention_chunk_size") or None
    return KVSpec(
        kind=KVKind.MLA if mixer is Mixer.FULL and uses_mla(facts) else KINDS[mixer],
        block_size=block,
        page_bytes=page,
        window=size,
        # `config/scheduler.py`: max_num_encoder_input_tokens = max_num_batched_tokens.
        encoder_tokens=settings.max_num_batched_tokens if mixer is Mixer.CROSS else 0,
    )
