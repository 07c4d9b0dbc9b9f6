"""The share of each tensor that one tensor-parallel rank creates.

Quantisation groups and blocks must not be cut. Source:
`quantization/utils/fp8_utils.py:validate_fp8_block_shape`,
`linear.py:_maybe_allow_fp8_block_shape_mismatch`, `marlin_utils.py:verify_marlin_supports_shape`.
"""

from fractions import Fraction
from math import prod

from moorage.memory.dtypes import quantisation_block, quantisation_method
from moorage.memory.facts import Facts
from moorage.memory.layer_caches import kv_heads_of
from moorage.memory.options import MemorySettings
from moorage.memory.parameters import Kind, expert_factor
from moorage.memory.refusal import rejected, unknown
from moorage.memory.sharding import Split
from moorage.memory.states import mamba2_sizes

GROUP_AXES = {"scales": 0, "weight_scale": 1}
"""Dimension of the scales of a quantised layer that counts the groups of its input."""

SINGLE_COLUMNS = ("q_b_proj", "kv_b_proj", "fc1", "c_fc", "dense_h_to_4h", "in_proj_ba")
"""Column-parallel layers that are never merged; merged layers may cut an `fp8` block."""


def require_whole_blocks(facts: Facts, kind: Kind, split: Split, tp: int) -> None:
    """Refuse a tensor-parallel size that cuts a quantisation group, or a block outside experts."""
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


VOCABULARY_PADDING = 64
"""Tokens to a multiple of which the vocabulary is padded.

Source: `vocab_parallel_embedding.py:DEFAULT_VOCAB_PADDING_SIZE`.
"""

PER_TENSOR = (
    *("input_scale", "weight_shape", "q_scale", "k_scale", "v_scale"),
    *("q_zero_point", "k_zero_point", "v_zero_point"),
)
"""Leaves that are whole on every rank, whatever the layer's split."""

SHARED_EXPERT = "shared_expert"
"""Start of the name of the modules with the experts that every token takes."""


def rank_elements(
    facts: Facts, kind: Kind, split: Split | None, settings: MemorySettings
) -> Fraction:
    """Elements of one tensor on one rank; a fraction if merged layers are rounded up together.

    Raises:
        Refusal: When it cannot be divided, or no rule covers it (`split` is None).
    """
    tp = settings.tensor_parallel_size
    elements = Fraction(kind.header.elements)
    undivided = kind.header.elements == 1 or kind.name.leaf in PER_TENSOR
    if split is Split.VOCABULARY and not undivided:
        rows, *rest = kind.header.shape
        padded = -(-rows // VOCABULARY_PADDING) * VOCABULARY_PADDING
        if padded % tp:
            raise rejected(f"the padded vocabulary ({padded}) is not divisible by {tp} ranks")
        return Fraction(padded * prod(rest), tp)
    shared = SHARED_EXPERT in kind.name.module
    if split is Split.WHOLE or (shared and settings.keeps_shared_experts_whole):
        return elements
    if kind.name.expert:
        elements *= expert_factor(facts, kind, settings)
        tp = settings.expert_ranks
        if settings.enable_expert_parallel:
            return elements * -(-facts.experts // tp) / facts.experts
    if tp == 1 or undivided:
        return elements
    if split is None:
        raise unknown(f"how {kind.name.module!r} is split over ranks is not known")
    _require_divisible(facts, kind, split, tp)
    return elements * _share(facts, kind, split, tp)


def _share(facts: Facts, kind: Kind, split: Split, tp: int) -> Fraction:
    match split:
        case Split.KV:
            return Fraction(1, min(tp, _kv_heads(facts, kind)))
        case Split.QKV:
            heads, kv_heads = facts.heads, _kv_heads(facts, kind)
            return Fraction(heads // tp + 2 * max(1, kv_heads // tp), heads + 2 * kv_heads)
        case Split.STATE:
            return _state_share(facts, kind.name.last, tp)
        case Split.ROW if _is_whole_in_rows(kind):
            return Fraction(1)
        case _:
            return Fraction(1, tp)


def _is_whole_in_rows(kind: Kind) -> bool:
    leaf, shape = kind.name.leaf, kind.header.shape
    if leaf == "weight_scale":
        return len(shape) < 2 or shape[-1] == 1
    if leaf in ("scales", "qzeros"):
        return shape[0] == 1
    return leaf == "bias"


def _state_share(facts: Facts, module: str, tp: int) -> Fraction:
    sizes = mamba2_sizes(facts)
    if sizes is None:
        return Fraction(1, tp)
    inner, width, heads, groups = sizes
    if groups % tp and groups != 1:
        # `mamba_mixer2.py:MambaMixer2`
        raise rejected(f"{groups} state groups cannot be spread over {tp} ranks; one could")
    wide = width * tp // groups if groups % tp else width
    if module == "conv1d":
        return Fraction(inner + 2 * wide, (inner + 2 * width) * tp)
    return Fraction(2 * inner + 2 * wide + heads, (2 * inner + 2 * width + heads) * tp)


def _kv_heads(facts: Facts, kind: Kind) -> int:
    return max(1, kv_heads_of(facts, kind.name.layer))


def _require_divisible(facts: Facts, kind: Kind, split: Split, tp: int) -> None:
    name, shape = kind.name, kind.header.shape
    if split in (Split.KV, Split.QKV):
        kv_heads = _kv_heads(facts, kind)
        if kv_heads % tp and tp % kv_heads:
            raise rejected(f"{kv_heads} key/value heads cannot be spread over {tp} ranks")
        if tp > kv_heads and facts.model_type == "gpt_oss":  # its class cannot copy heads
            raise rejected(f"{kv_heads} key/value heads cannot be copied to {tp} ranks")
    require_whole_blocks(facts, kind, split, tp)
    if kind.header.dtype == "U8":
        return  # packed, and padded if the ranks' parts are uneven
    if name.leaf != "weight" or len(shape) < 2 or split not in (Split.COLUMN, Split.ROW):
        return
    length, parts = shape[_split_axis(kind, split)], tp
    if name.last in ("gate_up_proj", "input_linear"):
        parts *= 2
    if length % parts:
        raise rejected(f"{length} of {name.module} is not divisible by {tp} ranks")


def _split_axis(kind: Kind, split: Split) -> int:
    if kind.name.stacked:
        transposed = kind.name.last in ("gate_up_proj", "down_proj")
        return -1 if (split is Split.COLUMN) is transposed else 1
    return 0 if split is Split.COLUMN else -1
