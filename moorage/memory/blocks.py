"""Quantisation groups and blocks that tensor parallelism must not cut.

Source: `quantization/utils/fp8_utils.py:validate_fp8_block_shape`,
`linear.py:_maybe_allow_fp8_block_shape_mismatch`, `marlin_utils.py:verify_marlin_supports_shape`.
"""

from __future__ import annotations

from moorage.memory.created import Kind
from moorage.memory.facts import Facts
from moorage.memory.quantisation import (
    quantisation_block,
    quantisation_method,
)
from moorage.memory.refusal import rejected
from moorage.memory.sharding import Split

GROUP_AXES = {"scales": 0, "weight_scale": 1}
"""Dimension in which the scales of a quantised layer run over the groups of its input."""

SINGLE_COLUMNS = ("q_b_proj", "kv_b_proj", "fc1", "c_fc", "dense_h_to_4h", "in_proj_ba")
"""Column-parallel layers that are not merged with others; merged ones may cut an `fp8` block."""


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
