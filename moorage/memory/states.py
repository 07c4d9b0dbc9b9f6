"""Bytes of a recurrent state: Mamba 1 and 2, gated delta net, short convolution.

Source: `model_executor/layers/mamba/mamba_utils.py:MambaStateShapeCalculator` and the method
`get_mamba_state_shape_from_config` of each model class.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from moorage.common.versions import at_least
from moorage.memory.dtypes import size_of
from moorage.memory.facts import Facts
from moorage.memory.need import DESCRIBED
from moorage.memory.options import MemorySettings
from moorage.memory.refusal import rejected, unknown

STATES_WITH_PREFIXES_SINCE = "0.27.0"
"""First version that may cache prefixes of models with recurrent states by default.

0.26 does not, and 0.32 does (`_set_default_chunked_prefill_and_prefix_caching_args`).
"""


class Mamba2(NamedTuple):
    """Configuration keys of the sizes of a Mamba 2 layer.

    The inner width is the product of the two keys `inner`, unless the key `width` is set.
    """

    inner: tuple[str, str]
    groups: str
    heads: str
    head: str
    state: str
    conv: str
    width: str = ""


_HYBRID = Mamba2(
    ("mamba_expand", "hidden_size"),
    *("mamba_n_groups", "mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_d_conv"),
)

MAMBA2: dict[str, Mamba2] = {
    "mamba2": Mamba2(
        ("expand", "hidden_size"),
        *("n_groups", "num_heads", "head_dim", "state_size", "conv_kernel"),
    ),
    "nemotron_h": Mamba2(
        ("mamba_num_heads", "mamba_head_dim"),
        *("n_groups", "mamba_num_heads", "mamba_head_dim", "ssm_state_size", "conv_kernel"),
    ),
    "granitemoehybrid": _HYBRID,
    "falcon_h1": _HYBRID._replace(width="mamba_d_ssm"),
    "zamba2": Mamba2(
        ("mamba_expand", "hidden_size"),
        *("mamba_ngroups", "n_mamba_heads", "mamba_headdim", "mamba_d_state", "mamba_d_conv"),
    ),
}

SSM_DTYPE_KEYS = {
    "nemotron_h": ("mamba_ssm_cache_dtype", "float32"),
    "kimi_linear": ("mamba_ssm_cache_dtype", "float32"),
    **dict.fromkeys(
        ("qwen3_5_text", "qwen3_5_moe_text", "qwen3_5", "qwen3_5_moe"), ("mamba_ssm_dtype", "auto")
    ),
}
"""Model types that choose the element type of their state: the key and its default."""


def state_bytes(facts: Facts, tp: int, dtype: str, ssm_dtype: str) -> int:
    """Bytes of the state of one layer on one of `tp` ranks.

    Convolutions have the model's `dtype`; the recurrent part has `ssm_dtype`, where `auto` = the
    model type's default, else `dtype`.
    """
    rule = ELEMENTS.get(facts.model_type)
    if rule is None:
        raise unknown(f"the recurrent state of model type {facts.model_type!r} is not known")
    conv, recurrent = rule(facts, tp)
    if ssm_dtype == "auto":
        key, default = SSM_DTYPE_KEYS.get(facts.model_type, ("", "auto"))
        ssm_dtype = str(facts.get(key) or default) if key else default
    ssm = dtype if ssm_dtype == "auto" else ssm_dtype
    return conv * size_of(dtype) + recurrent * size_of(ssm)


EACH_BLOCK_TYPES = (*MAMBA2, "jamba", "mamba", "falcon_mamba")
"""Model types that keep a state for each block of a cached prefix in versions before 0.32.

Those are the classes with `SupportsMambaPrefixCaching`, whose `--mamba-cache-mode` is then `all`.
"""

CHUNK_KEYS = ("mamba_chunk_size", "chunk_size")
CHUNK = 2048
"""Keys of the tokens that a Mamba kernel takes at once, and their number without either.

Source: `config/model.py:get_mamba_chunk_size`.
"""


class Kept(NamedTuple):
    """Blocks of a state that one request holds.

    Attributes:
        blocks: Their number; 0 = one for each block of its tokens.
        doubt: Why they may be fewer; empty = they are not.
    """

    blocks: int
    doubt: str = ""


def states_kept(facts: Facts, settings: MemorySettings, prefix: bool) -> Kept:
    """Blocks of a state that one request holds; with `prefix`, prefixes are cached.

    Source: `v1/kv_cache_interface.py:MambaSpec.max_memory_usage_bytes`; a Mamba 2 layer keeps a
    checkpoint of its prefill as well (`mamba_mixer2.py:get_kv_cache_spec`). In 0.26, the modes of
    `models/config.py:MambaModelConfig`.
    """
    if not prefix:
        return Kept(1)
    last = 3 if facts.model_type in MAMBA2 else 2
    if settings.sglang or settings.since(DESCRIBED) or facts.model_type not in EACH_BLOCK_TYPES:
        return Kept(last)
    stated = settings.enable_prefix_caching is not None
    if not stated and not any(map(_may_keep_all, settings.versions)):
        return Kept(last)  # those that cache by default keep the last ones only
    doubt = "" if settings.is_read else "this vLLM may keep fewer states of each request"
    if settings.mamba_cache_mode == "align":
        return Kept(last if doubt else 2, doubt)
    return Kept(0, doubt)


def _may_keep_all(version: str) -> bool:
    """Whether a version may cache prefixes by itself, and in a way that is not known."""
    return at_least(version, STATES_WITH_PREFIXES_SINCE) and not at_least(version, DESCRIBED)


def mamba2_sizes(facts: Facts) -> tuple[int, int, int, int] | None:
    """Inner width, width of all groups, heads and groups of a Mamba 2 layer; None = no Mamba 2."""
    keys = MAMBA2.get(facts.model_type)
    if keys is None:
        return None
    width = facts.require(keys.groups) * facts.require(keys.state)
    return _inner(facts, keys), width, facts.require(keys.heads), facts.require(keys.groups)


def _inner(facts: Facts, keys: Mamba2) -> int:
    if keys.width and facts.get(keys.width):
        return facts.require(keys.width)
    return _product(facts, *keys.inner)


def _product(facts: Facts, left: str, right: str) -> int:
    factor = facts.get(left)
    if not isinstance(factor, int | float):
        raise unknown(f"the configuration does not say `{left}`")
    return int(factor * facts.require(right))


def _share(amount: int, tp: int) -> int:
    if amount % tp:
        raise rejected(f"{amount} is not divisible by {tp}")
    return amount // tp


def _mamba1(facts: Facts, tp: int) -> tuple[int, int]:
    if facts.get("intermediate_size") is None:
        inner = _share(facts.require("expand") * facts.require("hidden_size"), tp)
    else:
        inner = _share(facts.require("intermediate_size"), tp)
    return inner * (facts.require("conv_kernel") - 1), inner * facts.require("state_size")


def _jamba(facts: Facts, tp: int) -> tuple[int, int]:
    inner = _share(_product(facts, "mamba_expand", "hidden_size"), tp)
    return inner * (facts.require("mamba_d_conv") - 1), inner * facts.require("mamba_d_state")


def _mamba2(facts: Facts, tp: int) -> tuple[int, int]:
    keys = MAMBA2[facts.model_type]
    groups = facts.require(keys.groups)
    if groups % tp and groups != 1:
        raise rejected(f"{groups} groups of a Mamba 2 layer cannot be spread over {tp} ranks")
    groups = tp if groups % tp else groups
    state = facts.require(keys.state)
    width = _share(_inner(facts, keys) + 2 * groups * state, tp)
    heads = _share(facts.require(keys.heads), tp)
    return width * (facts.require(keys.conv) - 1), heads * facts.require(keys.head) * state


def _gated_delta(facts: Facts, tp: int) -> tuple[int, int]:
    key, value = facts.require("linear_key_head_dim"), facts.require("linear_value_head_dim")
    heads = facts.require("linear_num_value_heads")
    width = _share(2 * key * facts.require("linear_num_key_heads") + value * heads, tp)
    conv = width * (facts.require("linear_conv_kernel_dim") - 1)
    return conv, _share(heads, tp) * key * value


def _short_conv(facts: Facts, tp: int) -> tuple[int, int]:
    return _share(facts.require("conv_dim"), tp) * (facts.require("conv_L_cache") - 1), 0


def _kimi_delta(facts: Facts, tp: int) -> tuple[int, int]:
    sizes = facts.get("linear_attn_config")
    names = ("num_heads", "head_dim", "short_conv_kernel_size")
    found: list[Any] = [sizes.get(name) for name in names] if isinstance(sizes, Mapping) else []
    if not found or not all(isinstance(value, int) and value for value in found):
        raise unknown("the configuration does not say `linear_attn_config`")
    heads, size, kernel = found
    width = _share(3 * heads * size, tp)
    return width * (kernel - 1), _share(heads, tp) * size * size


ELEMENTS: dict[str, Callable[[Facts, int], tuple[int, int]]] = {
    **dict.fromkeys(("mamba", "falcon_mamba"), _mamba1),
    "jamba": _jamba,
    **dict.fromkeys(MAMBA2, _mamba2),
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), _gated_delta),
    **dict.fromkeys(("qwen3_5", "qwen3_5_moe", "olmo_hybrid"), _gated_delta),
    **dict.fromkeys(("lfm2", "lfm2_moe"), _short_conv),
    "kimi_linear": _kimi_delta,
}
"""By model type, computes the elements of convolution and recurrent part on one of `tp` ranks."""
