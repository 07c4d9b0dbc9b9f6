"""What a configuration says about the quantisation of its checkpoint.

Source: `model_executor/layers/quantization/__init__.py`, `config/model.py:_verify_quantization`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.memory.facts import Facts
from moorage.memory.refusal import rejected, unknown

METHODS = (
    *("awq", "auto_awq", "awq_marlin", "gptq", "auto_gptq", "gptq_marlin", "fp8", "mxfp4"),
    *("modelopt", "modelopt_fp4", "modelopt_mxfp8", "modelopt_mixed", "compressed-tensors"),
    *("experts_int8", "quark", "moe_wna16", "torchao", "inc", "auto-round", "humming", "online"),
    *("gpt_oss_mxfp4", "deepseek_v4_fp8", "fp8_per_tensor", "fp8_per_block", "mxfp8"),
    *("fp8_per_channel", "int8_per_channel_weight_only", "nvfp4_per_token"),
)
"""Methods that vLLM knows and does not call deprecated."""


def quantisation(facts: Facts) -> Mapping[str, Any]:
    """The settings of the quantisation; empty without."""
    settings = facts.config.get("quantization_config") or facts.get("quantization_config")
    return settings if isinstance(settings, Mapping) else {}


def quantisation_method(facts: Facts) -> str:
    """Name of the method; empty without."""
    return str(quantisation(facts).get("quant_method") or "")


def quantisation_block(facts: Facts) -> Sequence[int]:
    """Rows and columns that share one scale; empty where scales go by tensor or channel."""
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


def require_known(facts: Facts) -> None:
    """Refuse a quantisation that vLLM does not have, or no longer has.

    Raises:
        Refused: With the setting. Source besides: `gptq_utils.py`.
    """
    method = quantisation_method(facts)
    if method and method not in METHODS:
        raise rejected(f"Unknown quantization method: {method}.")
    ordered = method == "gptq" and quantisation(facts).get("desc_act")
    if ordered and quantisation(facts).get("group_size") != -1:
        raise rejected("GPTQ group activation ordering (desc_act=True) is not supported.")
