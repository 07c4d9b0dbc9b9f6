"""Element types: of the parameters, the KV cache, the recurrent state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.memory.architectures import NO_FLOAT16
from moorage.memory.facts import Facts
from moorage.memory.refusal import unknown

SIZES = {
    **dict.fromkeys(("float32", "int32", "F32", "I32", "U32"), 4),
    **dict.fromkeys(("float16", "bfloat16", "F16", "BF16", "I16", "U16"), 2),
    **dict.fromkeys(("float64", "int64", "F64", "I64", "U64"), 8),
    **dict.fromkeys(("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"), 1),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "BOOL"), 1),
}
"""Bytes of one element, under vLLM's names and under those of safetensors."""

HALF_NAMES = {"half": "float16", "float": "float32"}


def size_of(dtype: str) -> int:
    """Bytes of one element.

    Raises:
        Refused: For an element type that is not known here.
    """
    size = SIZES.get(dtype)
    if size is None:
        raise unknown(f"the size of element type {dtype!r} is not known")
    return size


def engine_dtype(facts: Facts, pooling: bool) -> str:
    """Element type of unquantised parameters. Source: `config/model.py:_resolve_auto_dtype`.

    float32 checkpoints are cast: to float16 for pooling, to bfloat16 for generating.
    """
    named = facts.config.get("torch_dtype") or facts.config.get("dtype") or facts.get("torch_dtype")
    name = str(named or "float32").removeprefix("torch.")
    name = HALF_NAMES.get(name, name)
    model_type = str(facts.config.get("model_type") or "")
    if name == "float32":
        name = "float16" if pooling and model_type not in NO_FLOAT16 else "bfloat16"
    if name == "float16" and model_type in NO_FLOAT16:
        return "bfloat16"
    return name


def kv_dtype(facts: Facts, asked: str, dtype: str) -> str:
    """Element type of the KV cache; a checkpoint may bring its own scheme.

    Source: `utils/torch_utils.py:resolve_kv_cache_dtype_string`.
    """
    if asked != "auto":
        return asked
    settings = facts.config.get("quantization_config")
    return "fp8" if isinstance(settings, Mapping) and _kv_scheme(settings) else dtype


def _kv_scheme(settings: Mapping[str, Any]) -> bool:
    scheme = settings.get("kv_cache_scheme")
    nested = settings.get("quantization")
    named = settings.get("kv_cache_quant_algo")
    if isinstance(nested, Mapping):
        named = named or nested.get("kv_cache_quant_algo")
    if isinstance(scheme, Mapping):
        return scheme.get("type") == "float" and scheme.get("num_bits") == 8
    return str(named or "").upper() == "FP8"
