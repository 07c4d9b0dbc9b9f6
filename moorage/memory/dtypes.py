"""Element types, quantisation and runner (generate or pool) of a model.

Source: `config/model.py:_resolve_auto_dtype` and `_get_default_runner_type`,
`model_executor/models/registry.py`, `model_executor/layers/quantization/__init__.py` and
`config/model.py:_verify_quantization`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.memory import architectures
from moorage.memory.facts import Facts
from moorage.memory.options import MemorySettings
from moorage.memory.refusal import rejected_if, unknown

SIZES = {
    **dict.fromkeys(("float32", "int32", "F32", "I32", "U32"), 4),
    **dict.fromkeys(("float16", "bfloat16", "F16", "BF16", "I16", "U16"), 2),
    **dict.fromkeys(("float64", "int64", "F64", "I64", "U64"), 8),
    **dict.fromkeys(("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"), 1),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "BOOL"), 1),
}
"""Bytes of one element, by vLLM's and by safetensors' names."""


def size_of(dtype: str) -> int:
    """Bytes of one element."""
    if dtype not in SIZES:
        raise unknown(f"the size of element type {dtype!r} is not known")
    return SIZES[dtype]


def engine_dtype(facts: Facts, pooling: bool) -> str:
    """Element type of unquantised parameters. Source: `config/model.py:_resolve_auto_dtype`.

    float32 checkpoints are cast: to float16 for pooling, to bfloat16 for generating.
    """
    named = facts.config.get("torch_dtype") or facts.config.get("dtype") or facts.get("torch_dtype")
    name = str(named or "float32").removeprefix("torch.")
    name = {"half": "float16", "float": "float32"}.get(name, name)
    model_type = str(facts.config.get("model_type") or "")
    if name == "float32":
        name = "float16" if pooling else "bfloat16"
    is_refused = name == "float16" and model_type in architectures.NO_FLOAT16
    return "bfloat16" if is_refused else name


def kv_dtype(facts: Facts, requested: str, dtype: str) -> str:
    """Element type of the KV cache; a checkpoint may define its own scheme.

    Source: `utils/torch_utils.py:resolve_kv_cache_dtype_string`.
    """
    if requested != "auto":
        return requested
    settings = facts.config.get("quantization_config")
    return "fp8" if isinstance(settings, Mapping) and _kv_scheme(settings) else dtype


def _kv_scheme(settings: Mapping[str, Any]) -> bool:
    scheme, nested = settings.get("kv_cache_scheme"), settings.get("quantization")
    if isinstance(scheme, Mapping):
        return scheme.get("type") == "float" and scheme.get("num_bits") == 8
    named = settings.get("kv_cache_quant_algo")
    if not named and isinstance(nested, Mapping):
        named = nested.get("kv_cache_quant_algo")
    return str(named or "").upper() == "FP8"


METHODS = (
    *("awq", "auto_awq", "awq_marlin", "gptq", "auto_gptq", "gptq_marlin", "fp8", "mxfp4"),
    *("modelopt", "modelopt_fp4", "modelopt_mxfp8", "modelopt_mixed", "compressed-tensors"),
    *("experts_int8", "quark", "moe_wna16", "torchao", "inc", "auto-round", "humming", "online"),
    *("gpt_oss_mxfp4", "deepseek_v4_fp8", "fp8_per_tensor", "fp8_per_block", "mxfp8"),
    *("fp8_per_channel", "int8_per_channel_weight_only", "nvfp4_per_token"),
)
"""Quantisation methods that vLLM supports and does not deprecate."""


PLUGIN_METHODS = {"bitsandbytes": "0.27.1"}
"""Methods that need a plug-in now, with the last version that had them (pull request 43529)."""


FAMILIES = (
    {"awq", "auto_awq", "awq_marlin", "marlin"},
    {"gptq", "auto_gptq", "gptq_marlin", "marlin"},
    {"modelopt", "modelopt_fp4", "modelopt_mxfp8", "modelopt_mixed"},
    {"mxfp4", "gpt_oss_mxfp4"},
)
"""Names of one method; the configuration's decides (`override_quantization_method`)."""


def quantisation(facts: Facts) -> Mapping[str, Any]:
    """The quantisation settings; empty if the model is not quantised."""
    settings = facts.config.get("quantization_config") or facts.get("quantization_config")
    return settings if isinstance(settings, Mapping) else {}


def quantisation_method(facts: Facts) -> str:
    """Name of the quantisation method; empty if the model is not quantised."""
    return str(quantisation(facts).get("quant_method") or "")


def is_checkpoints(stated: str, own: str) -> bool:
    """Whether a stated method of quantisation is that of the checkpoint, which is its `own`."""
    return stated == own or any({stated, own} <= family for family in FAMILIES)


def quantisation_block(facts: Facts) -> Sequence[int]:
    """Rows and columns that share one scale; empty if scales are per tensor or channel."""
    settings = quantisation(facts)
    groups = settings.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping) and weights.get("block_structure"):
            return _sides(weights["block_structure"])
    return _sides(settings.get("weight_block_size"))


def _sides(block: Any) -> Sequence[int]:
    if not block:
        return ()
    sides = block if isinstance(block, list | tuple) else ()
    if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
        raise unknown("the quantisation blocks are not two whole numbers")
    return tuple(sides)


def require_known(facts: Facts, settings: MemorySettings) -> None:
    """Refuse a quantisation that vLLM does not support, or no longer supports.

    Raises:
        Refusal: With the setting. Further source: `gptq_utils.py`.
    """
    method = quantisation_method(facts)
    if method and method not in METHODS:
        certain = settings.lacks(PLUGIN_METHODS.get(method, ""))
        raise rejected_if(certain, f"Unknown quantization method: {method}.")
    ordered = method == "gptq" and quantisation(facts).get("desc_act")
    if ordered and quantisation(facts).get("group_size") != -1:
        note = "GPTQ group activation ordering (desc_act=True) is not supported."
        raise rejected_if(settings.lacks(), note)


def pools(facts: Facts, runner: str) -> bool:
    """Whether the engine pools; `runner` is the value of `--runner`."""
    if runner != "auto":
        return runner == "pooling"
    name = facts.architecture
    if name in architectures.POOLING_MODELS:
        return True
    return name.endswith(architectures.POOLING_ENDINGS) and not name.endswith(
        architectures.GENERATING_MODELS
    )
