"""How far rope scaling extends the configured context."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from moorage.common.versions import version_key
from moorage.images.catalogue import stated_version, vllm_of
from moorage.spec import EngineName, ModelSpec, Policy

POSITIONS = "max_position_embeddings"
ROPE_KEYS = ("rope_scaling", "rope_parameters")
"""Keys of the rope settings; transformers 5 reads the first as an alias of the second."""

ORIGINAL = "original_max_position_embeddings"
MOST = 1 << 62
"""Largest length and factor: far above any model's, and small enough never to overflow."""

HELD_SINCE = "0.30.0"
"""First version of vLLM that does not multiply the length for `yarn` (pull request 56446)."""


class RopeRule(StrEnum):
    """Whether the configured length already includes the scaling of `yarn`."""

    HELD = "held"
    """It includes the scaling: vLLM from 0.30.0, as in transformers."""

    MULTIPLIED = "multiplied"
    """The length before scaling is multiplied by the factor: vLLM before 0.30.0, and GPUStack."""


HELD_BY = {
    RopeRule.HELD: (
        *("su", "longrope", "llama3", "yarn"),
        *("telechat3-yarn", "deepseek_yarn", "deepseek_llama_scaling"),
    ),
    RopeRule.MULTIPLIED: ("su", "longrope", "llama3", "proportional"),
}
"""Rope types whose factor the configured length already includes, or that do not extend it.

Source: `_get_and_verify_max_len` of vLLM 0.20, 0.29, 0.30 and 0.32; GPUStack knows `proportional`.
"""

LEGACY_LAYER_TYPES = {
    "mamba": "linear_attention",
    "attention": "full_attention",
    "deepseek_sparse_attention": "indexed_attention",
    "qwen_sparse_attention": "indexed_attention",
}
"""Old names of layer types, with their names in transformers 5."""


def rope_rule(spec: ModelSpec) -> RopeRule:
    """The rule of the engine that a spec starts.

    An unknown version gets the rule with the shorter context, which every version accepts.
    """
    engine, version = spec.engine.name, stated_version(spec.engine)
    if spec.placement.policy == Policy.BASELINE or spec.engine.stated_name == EngineName.CUSTOM:
        return RopeRule.MULTIPLIED
    version = vllm_of(version) if engine == EngineName.TRITON else version
    if engine not in (EngineName.AUTO, EngineName.VLLM, EngineName.TRITON) or not version:
        return RopeRule.HELD
    older = version_key(version) < version_key(HELD_SINCE)
    return RopeRule.MULTIPLIED if older else RopeRule.HELD


def scaled_length(length: int, text: Mapping[str, Any], rule: RopeRule) -> int:
    """A length after rope scaling, in tokens; `text` is the language model's configuration."""
    whole = _written(text)
    factor: float | None = None
    for rope in rope_settings(text):
        kind = rope_type(rope)
        if kind in HELD_BY[rule]:
            continue
        if kind == "yarn":
            # transformers fills in the configured length, except in settings of one kind of layer.
            configured = first_int(text, POSITIONS) if rope is whole else None
            original = first_int(rope, ORIGINAL) or configured
            if original is None and rope is not whole:
                continue
            length = original or length
        if "factor" in rope:
            factor = rope_factor(rope)  # vLLM takes the last factor, even where it is `null`
    return length if factor is None else min(int(min(length, MOST) * factor), MOST)


def rope_settings(text: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The settings of each rope: a single one, or one for each kind of layer.

    Source: `nested_rope_parameter_keys` of transformers 5 and `iter_rope_parameters` of vLLM 0.32.
    """
    rope = _written(text)
    if not isinstance(rope, Mapping):
        return []
    if _is_nested(rope, text):
        return [part for part in rope.values() if isinstance(part, Mapping) and part]
    return [rope]


def rope_type(rope: Mapping[str, Any]) -> str:
    """The type of a rope, from the key `rope_type` or the older `type`."""
    return str(rope.get("rope_type") or rope.get("type") or "default")


def rope_factor(rope: Mapping[str, Any]) -> float | None:
    """The factor by which a rope extends the length; None where it is not a valid number."""
    factor = rope.get("factor")
    if isinstance(factor, int | float) and not isinstance(factor, bool) and 0 < factor <= MOST:
        return float(factor)
    return None


def _written(text: Mapping[str, Any]) -> object:
    scaling, parameters = (text.get(key) for key in ROPE_KEYS)
    if isinstance(scaling, Mapping) and isinstance(parameters, Mapping):
        # transformers may have copied `rope_scaling` into `rope_parameters`, with more fields.
        made = all(parameters.get(key) == value for key, value in scaling.items())
        return parameters if made else scaling or parameters
    return scaling or parameters


def _is_nested(rope: Mapping[str, Any], text: Mapping[str, Any]) -> bool:
    """Whether the settings are grouped by layer type; only types in `layer_types` count.

    Groups under other names, or next to a plain setting, do not count: transformers adds the type
    `default` to such settings.
    """
    listed = text.get("layer_types")
    if not isinstance(listed, list | tuple):
        return False
    names = {LEGACY_LAYER_TYPES.get(name, name) for name in listed if isinstance(name, str)}
    parts = all(part is None or isinstance(part, Mapping) for part in rope.values())
    return parts and not names.isdisjoint(rope)


def first_int(config: Mapping[str, Any], *keys: str) -> int | None:
    """The first of several fields that is a positive integer."""
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
