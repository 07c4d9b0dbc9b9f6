"""Quantisation groups and blocks that tensor parallelism must not cut.

Source: `quantization/utils/fp8_utils.py:validate_fp8_block_shape`,
`fused_moe/oracle/fp8.py:resolve_fp8_moe_weight_block_shape`, `moe_wna16.py`,
`marlin_utils.py:verify_marlin_supports_shape`.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from moorage.models.memory.created import Kind
from moorage.models.memory.facts import Facts
from moorage.models.memory.numbers import divide_up, round_up
from moorage.models.memory.quantisation import (
    quantisation,
    quantisation_block,
    quantisation_method,
)
from moorage.models.memory.refusal import rejected
from moorage.models.memory.settings import MemorySettings
from moorage.models.memory.sharding import Split

SMALLEST_BLOCK = 32
"""Elements; below it the MoE kernels have no smaller block or group."""

MXFP4_WIDTH = 64
"""Elements to which each rank's part of an mxfp4 expert is padded."""

GROUP_AXES = {"scales": 0, "weight_scale": 1}
"""Dimension in which the scales of a quantised layer run over the groups of its input."""

SINGLE_COLUMNS = ("q_b_proj", "kv_b_proj", "fc1", "c_fc", "dense_h_to_4h")
"""Column-parallel layers that are not merged with others; merged ones may cut an `fp8` block."""

EXPERT_WIDTH_KEYS = ("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")


def refined(facts: Facts, kind: Kind, settings: MemorySettings) -> Fraction:
    """How many times more scales an expert's layer gets than the checkpoint has.

    Where a rank's part of an expert cuts a block or a group, vLLM makes them smaller.

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
    return Fraction(1)


def require_whole_blocks(facts: Facts, kind: Kind, split: Split, tp: int) -> None:
    """Refuse a tensor-parallel size that cuts a group or a block outside of the experts.

    Raises:
        Refused: With the layer.
    """
    name, shape = kind.name, kind.header.shape
    if not name.expert or name.leaf == "weight_scale":
        _require_whole_groups(kind, split, tp)
    block = quantisation_block(facts)
    if not block or name.expert or name.leaf != "weight" or len(shape) < 2:
        return
    strict = quantisation_method(facts) != "fp8" or name.last in SINGLE_COLUMNS
    column = split in (Split.COLUMN, Split.KV) and strict
    if not kind.header.dtype.startswith("F8") or not (split is Split.ROW or column):
        return
    length, size = (shape[0], block[0]) if column else (shape[-1], block[1])
    if (length // tp) % size:
        raise rejected(
            f"{length // tp} of {name.module} on each of {tp} ranks is not divisible by the "
            f"quantisation block of {size}"
        )


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
    if not isinstance(group, int) or not width:
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


def _require_whole_groups(kind: Kind, split: Split, tp: int) -> None:
    axis = GROUP_AXES.get(kind.name.leaf)
    if split is not Split.ROW or axis is None or len(kind.header.shape) != 2:
        return
    groups = kind.header.shape[axis]
    if groups > 1 and groups % tp:
        raise rejected(
            f"the {groups} quantisation groups of {kind.name.module} are not divisible by "
            f"{tp} ranks"
        )


def _cut(part: int, size: int) -> Exception:
    return rejected(f"an expert's part of {part} on each rank cuts quantisation blocks of {size}")


def _expert_width(facts: Facts) -> int:
    for key in EXPERT_WIDTH_KEYS:
        value = facts.get(key)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, int) and value > 0:
            return value
    return 0
