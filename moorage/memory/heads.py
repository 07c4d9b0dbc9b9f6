"""How many bytes one token takes in one attention layer.

Source: the attention constructors in `model_executor/models/`, and `v1/kv_cache_interface.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moorage.memory.architectures import MLA_TYPES
from moorage.memory.facts import Facts
from moorage.memory.layers import attention_of
from moorage.memory.mixers import Mixer
from moorage.memory.refusal import unknown

INDEX_SCALE_BYTES = 4
INDEX_SCALE_SPAN = 128
"""A sparse indexer keeps fp8 keys, and a float32 scale for each span of them."""

SPLIT_HEADS = ("minicpm3",)
"""Model types with compressed weights, but a KV cache of whole heads (`minicpm3.py`)."""


@dataclass(frozen=True)
class HeadKeys:
    """Where a kind of layer keeps the sizes of its heads; a dot leads into a mapping.

    Attributes:
        number: Key of the key/value heads.
        size: Key of the elements of a key.
        value: Key of the elements of a value; empty = as many as in a key.
        gate: Key that must be true for `number` to count, else the model's own heads do.
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
"""Kinds of layers whose heads are not those that the configuration gives for the whole model."""


def uses_mla(facts: Facts) -> bool:
    """Whether the cache holds one compressed vector for all heads."""
    return facts.model_type in MLA_TYPES and facts.get("kv_lora_rank") is not None


def token_bytes(facts: Facts, mixer: Mixer, tp: int, element: int) -> int:
    """Bytes of one token in one layer on one rank.

    Args:
        facts: The model.
        mixer: Kind of the layer.
        tp: Tensor-parallel ranks; each keeps at least one head.
        element: Bytes of one element.
    """
    if mixer is Mixer.INDEX:
        size = facts.whole("index_head_dim")
        return size + size // INDEX_SCALE_SPAN * INDEX_SCALE_BYTES
    if uses_mla(facts):
        return (facts.whole("kv_lora_rank") + facts.whole("qk_rope_head_dim")) * element
    if facts.model_type in SPLIT_HEADS:
        size = facts.whole("qk_nope_head_dim") + facts.whole("qk_rope_head_dim")
        return max(1, facts.heads // tp) * 2 * size * element
    heads, key, value = _heads(facts, mixer)
    return max(1, heads // tp) * (key + value) * element


def kv_heads_of(facts: Facts, layer: int | None) -> int:
    """Key/value heads of one layer over all ranks; of the whole model outside of its layers."""
    types = {model_type for model_type, _ in HEADS}
    if layer is None or facts.model_type not in types:
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
