"""Bytes of the parameters that each rank of a stage creates.

Source: `model_executor/layers/linear.py`, `vocab_parallel_embedding.py`, `fused_moe/layer.py` and
the `create_weights` of `model_executor/layers/quantization/`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, prod
from typing import Any

from moorage.models.memory.architectures import ON_EVERY_STAGE, Part
from moorage.models.memory.dtypes import size_of
from moorage.models.memory.facts import Facts
from moorage.models.memory.numbers import divide_up, round_up
from moorage.models.memory.refusal import rejected, unknown
from moorage.models.memory.settings import MemorySettings
from moorage.models.memory.sharding import Split, TensorName, split_of, take_apart
from moorage.models.memory.states import mamba2_sizes, mamba_groups
from moorage.models.tensors import TensorHeader

VOCABULARY_PADDING = 64
"""Tokens (`vocab_parallel_embedding.py:DEFAULT_VOCAB_PADDING_SIZE`)."""

HEADS = ("lm_head", "embed_out", "output_layer", "output")
FLOAT32_NAMES = ("A_log", "A", "e_score_correction_bias")
FLOAT32_LEAVES = ("weight_scale_inv", "weight_scale", "input_scale", "k_scale", "v_scale")
KEPT = (
    *("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64"),
    "BOOL",
)
"""Element types that vLLM creates as the checkpoint has them; the others are cast."""

PER_OUTPUT_LEAVES = ("bias", "weight_scale", "input_scale", "weight_shape", "k_scale", "v_scale")
"""Leaves of a row-parallel layer that are whole on every rank, unless they come in groups."""

GROUP_AXES = {"scales": 0, "weight_scale": 1}
"""Dimension in which the scales of a quantised layer run over the groups of its input."""

MERGED_LEAVES = ("g_idx", "weight_g_idx", "weight_shape")
MERGED_AWAY = ("k_proj", "v_proj", "up_proj", "w3")
"""Layers that are merged into the one before them and have no such leaf of their own."""


@dataclass(frozen=True)
class _Kind:
    name: TensorName
    header: TensorHeader


def stage_weights(
    facts: Facts,
    tensors: Mapping[str, TensorHeader],
    settings: MemorySettings,
    dtype: str,
    stages: Sequence[range],
) -> tuple[int, ...]:
    """Bytes of the parameters of one rank, for each pipeline stage.

    Args:
        facts: The model.
        tensors: Headers of the checkpoint, by tensor name.
        settings: The engine.
        dtype: Element type of unquantised parameters.
        stages: Layers of each stage.

    Raises:
        Refused: When a tensor cannot be divided, or no rule knows how it is.
    """
    counts = _counted(facts, tensors)
    packed = any(kind.name.leaf == "weight_packed" for kind in counts)
    tied = _is_tied(facts, counts)
    totals = [0] * len(stages)
    for kind, count in counts.items():
        split = split_of(kind.name, facts.model_type)
        if split is Split.SKIPPED or (tied and kind.name.last in HEADS):
            continue
        size = size_of(_created_dtype(kind, dtype, packed))
        amount = count * _rank_elements(facts, kind, split, settings) * size
        for stage in _stages_of(facts, kind.name, tied, stages):
            totals[stage] += ceil(amount)
    return tuple(totals)


def _counted(facts: Facts, tensors: Mapping[str, TensorHeader]) -> Counter[_Kind]:
    if not tensors:
        raise unknown("there are no tensor headers")
    counts: Counter[_Kind] = Counter()
    for text, header in tensors.items():
        name = take_apart(text)
        beyond = name.layer is not None and name.layer >= facts.layers
        if beyond and "encoder" not in name.module:
            continue  # layers for speculative decoding, which the target model does not create
        if name.module.startswith("mtp.") or ".mtp." in name.module:
            continue
        if name.leaf in MERGED_LEAVES and name.last in MERGED_AWAY:
            continue
        counts[_Kind(name, header)] += 1
    return counts


def _is_tied(facts: Facts, counts: Counter[_Kind]) -> bool:
    tied = facts.get("tie_word_embeddings")
    if tied is None:
        return not any(kind.name.last in HEADS for kind in counts)
    return bool(tied)


def _created_dtype(kind: _Kind, dtype: str, packed: bool) -> str:
    if kind.name.last in FLOAT32_NAMES:
        return "F32"
    if kind.header.dtype in KEPT:
        return kind.header.dtype
    if kind.name.leaf in FLOAT32_LEAVES and not packed:
        return "F32"
    return dtype


def _stages_of(
    facts: Facts, name: TensorName, tied: bool, stages: Sequence[range]
) -> Sequence[int]:
    every = range(len(stages))
    if name.layer is not None and len(stages) != 1:
        return [i for i in every if name.layer in stages[i]]
    part = _part(name)
    if len(stages) == 1 or part in ON_EVERY_STAGE.get(facts.architecture, frozenset()):
        return every
    if part is Part.EMBEDDING:
        return sorted({0, len(stages) - 1}) if tied else [0]
    if part is Part.OTHER:
        raise unknown(f"on which pipeline stages {name.module!r} lies is not known")
    return [len(stages) - 1]


def _part(name: TensorName) -> Part:
    if name.last in HEADS:
        return Part.HEAD
    if "emb" in name.last or name.last in ("wte", "wpe"):
        return Part.EMBEDDING
    if "norm" in name.last or name.last == "ln_f":
        return Part.NORM
    return Part.OTHER


def _rank_elements(
    facts: Facts, kind: _Kind, split: Split | None, settings: MemorySettings
) -> Fraction:
    tp = settings.tensor_parallel_size
    elements = Fraction(kind.header.elements)
    if split is Split.VOCABULARY:
        rows, *rest = kind.header.shape
        padded = round_up(rows, VOCABULARY_PADDING)
        if padded % tp:
            raise rejected(f"the padded vocabulary ({padded}) is not divisible by {tp} ranks")
        return Fraction(padded * prod(rest), tp)
    if tp == 1 or split is Split.WHOLE:
        return elements
    if split is None:
        raise unknown(f"how {kind.name.module!r} is split over ranks is not known")
    if kind.name.expert and settings.enable_expert_parallel:
        experts = facts.experts
        return elements * divide_up(experts, tp) / experts
    _require_divisible(facts, kind, split, tp)
    return elements * _share(facts, kind, split, tp)


def _share(facts: Facts, kind: _Kind, split: Split, tp: int) -> Fraction:
    match split:
        case Split.KV:
            return Fraction(1, min(tp, _kv_heads(facts)))
        case Split.QKV:
            heads, kv_heads = facts.heads, _kv_heads(facts)
            return Fraction(heads // tp + 2 * max(1, kv_heads // tp), heads + 2 * kv_heads)
        case Split.STATE:
            return _state_share(facts, kind.name.last, tp)
        case Split.ROW if _is_whole_in_rows(kind):
            return Fraction(1)
        case _:
            per_tensor = kind.name.leaf in ("input_scale", "weight_shape", "g_idx")
            whole = per_tensor or kind.header.elements == 1
            return Fraction(1) if whole else Fraction(1, tp)


def _is_whole_in_rows(kind: _Kind) -> bool:
    leaf, shape = kind.name.leaf, kind.header.shape
    if leaf == "weight_scale":
        return len(shape) < 2 or shape[-1] == 1
    return leaf in PER_OUTPUT_LEAVES or kind.header.elements == 1


def _state_share(facts: Facts, module: str, tp: int) -> Fraction:
    sizes = mamba2_sizes(facts)
    if sizes is None:
        return Fraction(1, tp)
    inner, width, heads = sizes
    groups = mamba_groups(facts)
    wide = width * tp // groups if groups % tp else width
    if module == "conv1d":
        return Fraction(inner + 2 * wide, (inner + 2 * width) * tp)
    return Fraction(2 * inner + 2 * wide + heads, (2 * inner + 2 * width + heads) * tp)


def _kv_heads(facts: Facts) -> int:
    return max(1, facts.kv_heads)


def _require_divisible(facts: Facts, kind: _Kind, split: Split, tp: int) -> None:
    name, shape = kind.name, kind.header.shape
    if split in (Split.KV, Split.QKV):
        kv_heads = _kv_heads(facts)
        if kv_heads % tp and tp % kv_heads:
            raise rejected(f"{kv_heads} key/value heads cannot be spread over {tp} ranks")
    _require_whole_groups(kind, split, tp)
    if name.leaf != "weight" or len(shape) < 2 or split not in (Split.COLUMN, Split.ROW):
        return
    axis = _split_axis(name, split)
    length, parts = shape[axis], tp * (2 if name.last == "gate_up_proj" else 1)
    if length % parts:
        raise rejected(f"{length} of {name.module} is not divisible by {tp} ranks")
    block = _block(facts)
    if block and kind.header.dtype.startswith("F8"):
        size = block[0 if split is Split.COLUMN else 1]
        if (length // tp) % size:
            raise rejected(
                f"{length // tp} of {name.module} on each of {tp} ranks is not divisible by the "
                f"quantisation block of {size}"
            )


def _require_whole_groups(kind: _Kind, split: Split, tp: int) -> None:
    """Source: `quantization/utils/marlin_utils.py:verify_marlin_supports_shape`."""
    axis = GROUP_AXES.get(kind.name.leaf)
    if split is not Split.ROW or axis is None or len(kind.header.shape) != 2:
        return
    groups = kind.header.shape[axis]
    if groups > 1 and groups % tp:
        raise rejected(
            f"the {groups} quantisation groups of {kind.name.module} are not divisible by "
            f"{tp} ranks"
        )


def _split_axis(name: TensorName, split: Split) -> int:
    if name.stacked and name.last in ("gate_up_proj", "down_proj"):
        return -1 if split is Split.COLUMN else 1
    return 0 if split is Split.COLUMN else -1


def _block(facts: Facts) -> Sequence[int]:
    settings: Any = facts.config.get("quantization_config") or {}
    return settings.get("weight_block_size") or () if isinstance(settings, Mapping) else ()
