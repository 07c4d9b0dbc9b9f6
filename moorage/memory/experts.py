"""How the parameters of routed experts differ from the checkpoint on one rank.

Source: `fused_moe/oracle/fp8.py:resolve_fp8_moe_weight_block_shape`, `moe_wna16.py`,
`fused_moe/oracle/mxfp4.py`.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from moorage.memory.created import Kind
from moorage.memory.facts import Facts
from moorage.memory.numbers import divide_up, round_up
from moorage.memory.quantisation import (
    quantisation,
    quantisation_block,
    quantisation_method,
)
from moorage.memory.refusal import Refused, rejected
from moorage.memory.settings import MemorySettings

SMALLEST_BLOCK = 32
"""Elements; below it the MoE kernels have no smaller block or group."""

MXFP4_WIDTH = 64
"""Elements to which each rank's part of an mxfp4 expert is padded."""

LEAST_WIDTHS = {"kimi_linear": ("min_moe_intermediate_per_partition", 256)}
"""Model types that pad each rank's part of an expert: the key of its least width, the default."""

EXPERT_WIDTH_KEYS = ("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")


def expert_factor(facts: Facts, kind: Kind, settings: MemorySettings) -> Fraction:
    """How many times more elements an expert's tensor has than the checkpoint says.

    Where a rank's part of an expert cuts a block or a group, vLLM makes them smaller, so there
    are more scales; some kernels and classes pad the part itself.

    Args:
        facts: The model.
        kind: A tensor of routed experts.
        settings: The engine.

    Raises:
        Refused: When no allowed size divides the part.
    """
    leaf, shape = kind.name.leaf, kind.header.shape
    method = quantisation_method(facts)
    if method == "fp8" and leaf == "weight_scale_inv" and len(shape) > 1:
        return _smaller_blocks(facts, kind, settings)
    if method in ("awq", "gptq") and shape[0] > 1:
        times = _smaller_groups(facts, settings)
        if times > 1 and method == "gptq" and leaf in ("qzeros", "bias"):
            return Fraction(0)  # `moe_wna16.py` takes over, which has neither
        return times if leaf in ("scales", "qzeros") else Fraction(1)
    if method == "mxfp4":
        return _padded(facts, kind, settings)
    if facts.model_type in LEAST_WIDTHS and settings.tensor_parallel_size > 1:
        return _widened(facts, settings)
    return Fraction(1)


def _smaller_blocks(facts: Facts, kind: Kind, settings: MemorySettings) -> Fraction:
    block, width = quantisation_block(facts), _expert_width(facts)
    if not block or not width:
        return Fraction(1)
    hidden = facts.whole("hidden_size")
    tp = 1 if settings.enable_expert_parallel else settings.tensor_parallel_size
    part = width // tp
    if part % block[0] == 0 and (tp == 1 or part % block[1] == 0):
        return Fraction(1)
    size = gcd(*block, part, hidden)
    if size < SMALLEST_BLOCK:
        raise _cut(part, block[0])
    experts = kind.header.shape[0] if len(kind.header.shape) == 3 else 1
    return Fraction(experts * width * hidden, size * size * kind.header.elements)


def _smaller_groups(facts: Facts, settings: MemorySettings) -> Fraction:
    group, width = quantisation(facts).get("group_size"), _expert_width(facts)
    if not isinstance(group, int) or not group or not width:
        return Fraction(1)
    tp = 1 if settings.enable_expert_parallel else settings.tensor_parallel_size
    part, size = width // tp, group
    while part % size or facts.whole("hidden_size") % size:
        size //= 2
        if size < SMALLEST_BLOCK:
            raise _cut(part, group)
    return Fraction(group, size)


def _padded(facts: Facts, kind: Kind, settings: MemorySettings) -> Fraction:
    """Source: `oracle/mxfp4.py:mxfp4_round_up_hidden_size_and_intermediate_size`, last case."""
    width = _expert_width(facts)
    tp = 1 if settings.enable_expert_parallel else settings.tensor_parallel_size
    if not width or (kind.name.last == "down_proj" and kind.name.leaf == "bias"):
        return Fraction(1)
    return Fraction(round_up(divide_up(width, tp), MXFP4_WIDTH) * tp, width)


def _widened(facts: Facts, settings: MemorySettings) -> Fraction:
    """Source: `models/kimi_k3/nvidia/model.py`, `padded_moe_intermediate_size`."""
    width, tp = _expert_width(facts), settings.tensor_parallel_size
    key, default = LEAST_WIDTHS[facts.model_type]
    least = facts.number(key) or default
    if settings.enable_expert_parallel or width // tp >= least:
        return Fraction(1)
    return Fraction(least * tp, width)


def _cut(part: int, size: int) -> Refused:
    return rejected(f"an expert's part of {part} on each rank cuts quantisation blocks of {size}")


def _expert_width(facts: Facts) -> int:
    for key in EXPERT_WIDTH_KEYS:
        value = facts.get(key)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, int) and value > 0:
            return value
    return 0
