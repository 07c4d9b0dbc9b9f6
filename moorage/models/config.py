"""A model's configuration: its parts, its context length, and the limits of its fields.

The limits are checked once, where a configuration is read. Fields that affect memory, time or
output have a type and bounds; any other may hold any JSON. A list is checked item by item, since
some models have a number for each layer.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.printable import short
from moorage.models.rope import ORIGINAL, ROPE_KEYS, RopeRule, first_int, scaled_length

Config = Mapping[str, Any]

LENGTH_KEYS = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"),
    *("model_max_length", "max_target_positions", "max_sequence_length", "max_seq_length"),
    "seq_len",
)
LAYER_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
TEXT_CONFIG_KEYS = ("llm_config", "text_config", "thinker_config", "language_config")
PARTS = (*TEXT_CONFIG_KEYS, "vision_config", "audio_config")
"""Keys of nested configurations."""


def architectures(config: Config) -> tuple[str, ...]:
    """The architectures in a configuration; empty when it names none."""
    named = config.get("architectures") or ()
    if isinstance(named, str):
        return (named,)
    return tuple(map(str, named)) if isinstance(named, list | tuple) else ()


def text_config(config: Config) -> Config:
    """The configuration of the language model: a nested part in multimodal models, else the whole.

    A nested part counts only if it describes attention heads; vLLM decides the same way.
    """
    for key in TEXT_CONFIG_KEYS:
        part = config.get(key)
        if isinstance(part, Mapping):
            inner = part.get("text_config") if key == "thinker_config" else None
            part = inner if isinstance(inner, Mapping) else part
            if part.get("num_attention_heads"):
                return part
    return config


def apply_overrides(config: Config, overrides: Config) -> dict[str, Any]:
    """A configuration after `--hf-overrides`; nested parts are merged key by key.

    Source: `_apply_dict_overrides` of vLLM 0.32, `config/model.py`.
    """
    changed = dict(config)
    for key, value in overrides.items():
        part = changed.get(key)
        if key in PARTS and isinstance(part, Mapping) and isinstance(value, Mapping):
            value = apply_overrides(part, value)
        if key in ROPE_KEYS:
            changed = {name: kept for name, kept in changed.items() if name not in ROPE_KEYS}
        changed[key] = value
    return changed


MODELOPT = "hf_quant_config.json"
"""The file next to config.json to which NVIDIA's ModelOpt up to 0.29 writes the quantisation."""

MODELOPT_KEYS = ("quant_algo", "kv_cache_quant_algo")


def with_modelopt(config: dict[str, Any], content: Any) -> dict[str, Any]:
    """A configuration with the quantisation in ModelOpt's file, unless it states one itself.

    Source: `get_config` and `_normalize_quantization_config` of vLLM's `transformers_utils`.

    Raises:
        Failure: `SOURCE_CORRUPT` when a field exceeds the limits of any model.
    """
    found = content.get("quantization") if isinstance(content, Mapping) else None
    if config.get("quantization_config") is not None or not isinstance(found, Mapping):
        return config
    kept = {key: found[key] for key in MODELOPT_KEYS if found.get(key)}
    require_limits(kept, MODELOPT, Cause.SOURCE_CORRUPT)
    if "quant_algo" not in kept:
        return config
    method = "modelopt_fp4" if str(kept["quant_algo"]).upper() == "NVFP4" else "modelopt"
    return {**config, "quantization_config": {"quant_method": method, "quantization": kept}}


def context_length(
    config: Config, unknown: int | None = None, rule: RopeRule = RopeRule.MULTIPLIED
) -> int | None:
    """Longest context of a configuration in tokens; None when it is unknown.

    Where the configuration has no length, `unknown` is scaled instead.
    """
    text = text_config(config)
    lengths = [length for key in LENGTH_KEYS if (length := first_int(text, key))]
    # Command-R states a shorter length too; `model_max_length` wins in vLLM.
    length = first_int(text, "model_max_length") or min(lengths, default=unknown)
    kinds = (str(part.get("model_type") or "") for part in (config, text))
    if length is None or any("gemma3" in kind for kind in kinds):
        return length  # gemma3 configures the length after scaling
    return scaled_length(length, text, rule)


Check = Callable[[Any], str]
"""Describes what is wrong with a value other than a list, mapping or null; empty = nothing."""

MOST_LAYERS = 1_000
MOST_LABELS = 100_000
LARGEST_SIZE = 1 << 40
LARGEST_LENGTH = 10**31
"""Tokens. Tokenizers write 10**30 for no limit."""

LARGEST_FACTOR = 1e6
LONGEST_NAME = 1024
LONGEST_LIST = 10_000


def require_limits(config: Mapping[str, Any], place: str, cause: Cause) -> None:
    """Check every field of a configuration and of its nested parts.

    `place` names where the configuration was read, for messages.

    Raises:
        Failure: With the path of the first field that exceeds its limits.
    """
    for path, key, value in _fields(config):
        if problem := _problem(key, value):
            raise Failure(cause, f"{place}: {short('.'.join(path))} {problem}")


def _fields(config: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """Each field with its path, including fields of nested mappings and of lists of mappings."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), config)]
    while waiting:
        path, part = waiting.pop()
        for key, value in part.items() if isinstance(part, Mapping) else ():
            yield (*path, key), key, value
            inner = value if isinstance(value, list) else [value]
            waiting += [((*path, key), item) for item in inner if isinstance(item, Mapping)]


def _problem(key: str, value: Any) -> str:
    check = CHECKS.get(key) or (_looped if LOOPED.search(key) else None)
    if check is None:
        return ""
    if isinstance(value, list | Mapping) and len(value) > LONGEST_LIST:
        return f"has {len(value):,} items, more than {LONGEST_LIST:,}"
    return next(filter(None, map(check, _plain(value))), "")


def _plain(value: Any) -> Iterator[Any]:
    """The value itself, or the values nested in it, without nulls."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        elif isinstance(item, Mapping):
            waiting += item.values()
        elif item is not None:
            yield item


def _between(least: float, most: float) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, int | float):
            return f"is {short(repr(value))}, and no number"
        if isinstance(value, float) and not math.isfinite(value):
            return f"is {value}, and no finite number"
        if value < least:
            return f"is {short(str(value))}, less than {least:,}"
        return f"is {short(str(value))}, more than {most:,}" if value > most else ""

    return check


def _name(value: Any) -> str:
    if not isinstance(value, str):
        return f"is {short(repr(value))}, and no text"
    if len(value) > LONGEST_NAME:
        return f"has {len(value):,} characters, more than {LONGEST_NAME}"
    return "" if value.isprintable() else f"is {short(repr(value))}, with characters of no name"


def _looped(value: Any) -> str:
    """Check of numbers of layers under any name: configuration classes loop up to them."""
    if isinstance(value, str) and len(value) > LONGEST_LIST:
        return f"has {len(value):,} characters, more than {LONGEST_LIST:,}"
    if isinstance(value, int | float) and not abs(value) <= MOST_LABELS:
        return f"is {short(str(value))}, beyond {MOST_LABELS:,}"
    return ""


LOOPED = re.compile(
    r"layers?$|depths?$|blocks$|stages$|labels$|first_k|indices$|idxs$|types?$|pattern$|interval$"
)

_SIZES = """
num_attention_heads n_head n_heads num_heads decoder_attention_heads num_key_value_heads
num_kv_heads n_head_kv multi_query_group_num num_attention_groups kv_n_heads
num_global_key_value_heads swa_num_key_value_heads num_dummy_heads hidden_size n_embd d_model
vocab_size padded_vocab_size intermediate_size n_inner ffn_dim head_dim swa_head_dim v_head_dim
swa_v_head_dim global_head_dim attention_head_dim index_head_dim kv_lora_rank qk_rope_head_dim
qk_nope_head_dim num_experts moe_num_experts n_routed_experts num_local_experts num_experts_per_tok
moe_topk moe_top_k moe_k top_k_experts moe_intermediate_size expert_ffn_hidden_size ffn_hidden_size
min_moe_intermediate_per_partition r linear_key_head_dim linear_value_head_dim
linear_num_value_heads linear_num_key_heads mamba_d_ssm mamba_num_heads mamba_n_heads n_mamba_heads
mamba_head_dim mamba_d_head mamba_headdim n_groups mamba_n_groups mamba_ngroups state_size
ssm_state_size mamba_d_state conv_kernel mamba_d_conv linear_conv_kernel_dim conv_L_cache conv_dim
short_conv_kernel_size max_window_layers attn_layer_offset attn_layer_period max_source_positions
"""
_WINDOWS = """
sliding_window attention_chunk_size sliding_window_pattern _sliding_window_pattern
global_attn_every_n_layers group_size no_rope_layer_interval full_attention_interval
"""
_NAMES = """
model_type architectures dtype torch_dtype quant_method peft_type rope_type base_model_name_or_path
quant_algo kv_cache_quant_algo router_dtype moe_router_dtype mamba_ssm_dtype mamba_ssm_cache_dtype
"""
_LAYERS = (*LAYER_KEYS, "decoder_layers", "num_kv_shared_layers")
_FACTORS = ("factor", "partial_rotary_factor", "expand", "mamba_expand")

CHECKS: dict[str, Check] = {
    "num_labels": _between(0, MOST_LABELS),
    **dict.fromkeys(_LAYERS, _between(0, MOST_LAYERS)),
    **dict.fromkeys(_SIZES.split(), _between(0, LARGEST_SIZE)),
    **dict.fromkeys(_WINDOWS.split(), _between(-1, LARGEST_SIZE)),
    **dict.fromkeys((*LENGTH_KEYS, ORIGINAL), _between(-1, LARGEST_LENGTH)),
    **dict.fromkeys(_FACTORS, _between(0, LARGEST_FACTOR)),
    **dict.fromkeys(_NAMES.split(), _name),
}
"""Checks by the name of the field, at any depth of the configuration."""
