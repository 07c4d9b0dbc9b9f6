"""Bytes of a recurrent state: Mamba 1 and 2, gated delta net, short convolution.

Source: `model_executor/layers/mamba/mamba_utils.py:MambaStateShapeCalculator` and the method
`get_mamba_state_shape_from_config` of each model class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moorage.memory.dtypes import size_of
from moorage.memory.facts import Facts
from moorage.memory.refusal import rejected, unknown

Key = str | tuple[str, ...]


@dataclass(frozen=True)
class Mamba1:
    """Keys of a Mamba 1 state: `inner` is a key or the factors of a product."""

    inner: Key
    state: str
    conv: str


@dataclass(frozen=True)
class Mamba2:
    """Keys of a Mamba 2 state; `inner` names factors, the first key that is set wins."""

    inner: tuple[Key, ...]
    groups: str
    heads: str
    head: str
    state: str
    conv: str


@dataclass(frozen=True)
class GatedDelta:
    """A gated delta net; its keys are the same in every model that has one."""


@dataclass(frozen=True)
class ShortConv:
    """Keys of a short convolution."""

    width: str
    conv: str


@dataclass(frozen=True)
class Kda:
    """Kimi delta attention; its sizes lie in `linear_attn_config`."""


STATES: dict[str, Mamba1 | Mamba2 | GatedDelta | ShortConv | Kda] = {
    **dict.fromkeys(
        ("mamba", "falcon_mamba"), Mamba1("intermediate_size", "state_size", "conv_kernel")
    ),
    "jamba": Mamba1(("mamba_expand", "hidden_size"), "mamba_d_state", "mamba_d_conv"),
    "mamba2": Mamba2(
        (("expand", "hidden_size"),),
        "n_groups",
        "num_heads",
        "head_dim",
        "state_size",
        "conv_kernel",
    ),
    "nemotron_h": Mamba2(
        (("mamba_num_heads", "mamba_head_dim"),),
        *("n_groups", "mamba_num_heads", "mamba_head_dim", "ssm_state_size", "conv_kernel"),
    ),
    "granitemoehybrid": Mamba2(
        (("mamba_expand", "hidden_size"),),
        *("mamba_n_groups", "mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_d_conv"),
    ),
    "falcon_h1": Mamba2(
        ("mamba_d_ssm", ("mamba_expand", "hidden_size")),
        *("mamba_n_groups", "mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_d_conv"),
    ),
    "zamba2": Mamba2(
        (("mamba_expand", "hidden_size"),),
        *("mamba_ngroups", "n_mamba_heads", "mamba_headdim", "mamba_d_state", "mamba_d_conv"),
    ),
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_5", "qwen3_5_moe", "olmo_hybrid"),
        GatedDelta(),
    ),
    **dict.fromkeys(("lfm2", "lfm2_moe"), ShortConv("conv_dim", "conv_L_cache")),
    "kimi_linear": Kda(),
}
"""Where each model type keeps the sizes of its state."""

SSM_DTYPE_KEYS = {
    "nemotron_h": ("mamba_ssm_cache_dtype", "float32"),
    "kimi_linear": ("mamba_ssm_cache_dtype", "float32"),
    **dict.fromkeys(
        ("qwen3_5_text", "qwen3_5_moe_text", "qwen3_5", "qwen3_5_moe"), ("mamba_ssm_dtype", "auto")
    ),
}
"""Model types that choose the element type of the state themselves: key and default."""


def state_bytes(facts: Facts, tp: int, dtype: str, ssm_dtype: str) -> int:
    """Bytes of the state of one layer on one rank.

    Args:
        facts: The model.
        tp: Tensor-parallel ranks.
        dtype: Element type of the model, which convolutions keep.
        ssm_dtype: Element type requested for the recurrent part, or `auto`.
    """
    conv, recurrent = _elements(facts, tp)
    if ssm_dtype == "auto":
        key, default = SSM_DTYPE_KEYS.get(facts.model_type, ("", "auto"))
        ssm_dtype = str(facts.get(key) or default) if key else default
    ssm = dtype if ssm_dtype == "auto" else ssm_dtype
    return conv * size_of(dtype) + recurrent * size_of(ssm)


def blocks_kept(facts: Facts, prefix: bool) -> int:
    """Blocks that one request holds of a state.

    Source: `v1/kv_cache_interface.py:MambaSpec.max_memory_usage_bytes`; a Mamba 2 layer keeps a
    checkpoint of its prefill as well (`mamba_mixer2.py:get_kv_cache_spec`).

    Args:
        facts: The model.
        prefix: Whether prefixes are cached.
    """
    if not prefix:
        return 1
    return 3 if isinstance(STATES.get(facts.model_type), Mamba2) else 2


def mamba2_sizes(facts: Facts) -> tuple[int, int, int] | None:
    """Inner width, width of all groups and heads of a Mamba 2 layer; None in other models."""
    keys = STATES.get(facts.model_type)
    if not isinstance(keys, Mamba2):
        return None
    width = facts.require(keys.groups) * facts.require(keys.state)
    return _first(facts, keys.inner), width, facts.require(keys.heads)


def mamba_groups(facts: Facts) -> int:
    """Groups of a Mamba 2 layer."""
    keys = STATES.get(facts.model_type)
    return facts.require(keys.groups) if isinstance(keys, Mamba2) else 1


def _elements(facts: Facts, tp: int) -> tuple[int, int]:
    match STATES.get(facts.model_type):
        case Mamba1() as keys:
            inner = _share(_product(facts, keys.inner), tp)
            return inner * (facts.require(keys.conv) - 1), inner * facts.require(keys.state)
        case Mamba2() as keys:
            groups = facts.require(keys.groups)
            if groups % tp and groups != 1:
                raise rejected(
                    f"{groups} groups of a Mamba 2 layer cannot be spread over {tp} ranks"
                )
            groups += tp - groups if groups % tp else 0
            state = facts.require(keys.state)
            width = _share(_first(facts, keys.inner) + 2 * groups * state, tp)
            heads = _share(facts.require(keys.heads), tp)
            return width * (facts.require(keys.conv) - 1), heads * facts.require(keys.head) * state
        case GatedDelta():
            key = facts.require("linear_key_head_dim")
            value = facts.require("linear_value_head_dim")
            heads = facts.require("linear_num_value_heads")
            width = _share(2 * key * facts.require("linear_num_key_heads") + value * heads, tp)
            conv = width * (facts.require("linear_conv_kernel_dim") - 1)
            return conv, _share(heads, tp) * key * value
        case Kda():
            return _kda_elements(facts, tp)
        case ShortConv() as keys:
            return _share(facts.require(keys.width), tp) * (facts.require(keys.conv) - 1), 0
        case _:
            raise unknown(f"the recurrent state of model type {facts.model_type!r} is not known")


def _kda_elements(facts: Facts, tp: int) -> tuple[int, int]:
    sizes = facts.get("linear_attn_config")
    names = ("num_heads", "head_dim", "short_conv_kernel_size")
    found: list[Any] = [sizes.get(name) for name in names] if isinstance(sizes, Mapping) else []
    if not found or not all(isinstance(value, int) and value for value in found):
        raise unknown("the configuration does not say `linear_attn_config`")
    heads, size, kernel = found
    width = _share(3 * heads * size, tp)
    return width * (kernel - 1), _share(heads, tp) * size * size


def _first(facts: Facts, choices: tuple[Key, ...]) -> int:
    for choice in choices[:-1]:
        if isinstance(choice, str) and facts.get(choice):
            return facts.require(choice)
    return _product(facts, choices[-1])


def _product(facts: Facts, key: Key) -> int:
    if isinstance(key, str):
        if key == "intermediate_size" and facts.get(key) is None:
            return int(facts.require("expand") * facts.require("hidden_size"))
        return facts.require(key)
    left, right = key
    factor = facts.get(left)
    if not isinstance(factor, int | float):
        raise unknown(f"the configuration does not say `{left}`")
    return int(factor * facts.require(right))


def _share(amount: int, tp: int) -> int:
    if amount % tp:
        raise rejected(f"{amount} is not divisible by {tp}")
    return amount // tp
