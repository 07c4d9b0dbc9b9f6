"""How vLLM pads the experts of gpt-oss (mxfp4): as the kernel needs that it chooses.

Source, read in 0.26 and 0.32: `fused_moe/oracle/mxfp4.py` (the order of the kernels,
`mxfp4_round_up_hidden_size_and_intermediate_size`, the conversion after loading),
`is_supported_config` of the kernels, and `mxfp4_utils.py:_swizzle_mxfp4`.
"""

import re
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from moorage.memory.dtypes import quantisation_method
from moorage.memory.facts import Facts
from moorage.memory.need import DESCRIBED, MemoryQuery
from moorage.memory.options import ALSO_READ, MemorySettings


class Kernel(StrEnum):
    """Kernels of the experts; `ANY` and `NARROW` = it is not known which.

    `NARROW` is one of an NVIDIA accelerator for which there is none of TRT-LLM.
    """

    TRITON = "triton"
    MARLIN = "marlin"
    TRTLLM = "trtllm"
    CPU = "cpu"
    ANY = "any"
    NARROW = "narrow"


class Padding(NamedTuple):
    """Multiples to which a kernel rounds the sides of an expert up.

    Attributes:
        hidden: Of the model's width.
        width: Of each rank's part of the expert's own width.
        scale_rows: Of the rows of scales, in addition.
        scale_groups: Of the scales of a row, in addition.
        bias: Bytes of an element of a bias for each byte of it in the checkpoint.
    """

    hidden: int
    width: int
    scale_rows: int = 1
    scale_groups: int = 1
    bias: int = 1


PADDINGS = {
    Kernel.TRITON: Padding(1, 64, scale_rows=256, scale_groups=4, bias=2),
    Kernel.MARLIN: Padding(256, 128),
    Kernel.TRTLLM: Padding(256, 256, bias=2),
    Kernel.CPU: Padding(32, 32, bias=2),
    Kernel.ANY: Padding(256, 256, bias=2),
    Kernel.NARROW: Padding(256, 128, scale_rows=256, scale_groups=4, bias=2),
}

NARROWER_TRTLLM = Padding(256, 128, bias=2)
"""Of TRT-LLM in the version that the rules describe."""

DEVICES = {
    Kernel.TRITON: re.compile(r"\b(?:GH200|H[12]00|H800|H20)\b"),
    Kernel.TRTLLM: re.compile(r"\bG?B[123]00\b"),
    Kernel.MARLIN: re.compile(
        r"\b(?:A100|A800|A30|A10G?|A40|A16|A2|L40[SG]?|L20|L4|L2|GB10)\b"
        r"|\bRTX (?:[345]0\d0|A\d{4}|PRO)\b|\bAda\b"
    ),
}
"""NVIDIA's names of the accelerators whose compute capability each kernel is chosen for."""

METHOD = "mxfp4"
DOWN = "down_proj"

GROUP = 32
"""Elements that share one scale."""


def kernel_of(device_type: str, device_name: str) -> Kernel:
    """The kernel that vLLM prefers on an accelerator."""
    if device_type == "cpu":
        return Kernel.CPU
    found = (kernel for kernel, names in DEVICES.items() if names.search(device_name))
    return next(found, Kernel.ANY) if device_type == "cuda" else Kernel.ANY


def kernel_for(facts: Facts, query: MemoryQuery) -> str:
    """What of an accelerator decides about the weights; empty = nothing."""
    if quantisation_method(facts) != METHOD:
        return ""
    return kernel_of(query.device_type, query.device_name)


def chosen_kernel(facts: Facts, settings: MemorySettings) -> Kernel:
    """The kernel of the experts; `ANY` or `NARROW` where more than the accelerator may decide.

    SGLang pads as Triton's kernel needs it (`mxfp4.py:Mxfp4MoEMethod.create_weights`).
    """
    preferred = kernel_of(settings.device_type, settings.device_name)
    if settings.sglang and preferred is Kernel.TRITON:
        return preferred
    decides = settings.data_parallel_size == 1 and not settings.special_kernel
    if facts.model_type == "gpt_oss" and decides and settings.since(ALSO_READ):
        return preferred
    return Kernel.NARROW if preferred in (Kernel.TRITON, Kernel.MARLIN) else Kernel.ANY


def doubt_of_padding(facts: Facts, settings: MemorySettings) -> str:
    """Why the size of the experts is an estimate; empty = it is none."""
    if quantisation_method(facts) != METHOD:
        return ""
    kernel = chosen_kernel(facts, settings)
    if kernel in (Kernel.ANY, Kernel.NARROW):
        return "experts padded as widely as any kernel does, for it is not known which vLLM takes"
    alike = kernel is not Kernel.TRTLLM or settings.since(DESCRIBED) or settings.before(DESCRIBED)
    return "" if settings.is_read and alike else "experts padded as in other versions of vLLM"


def padding_factor(
    facts: Facts, settings: MemorySettings, width: int, module: str, leaf: str
) -> Fraction:
    """The ratio of elements that vLLM keeps of an expert's tensor to those in the checkpoint.

    `width` is the expert's own; its `down_proj` leads back to the model's. A bias of wider elements
    counts as one of more elements.
    """
    kernel = chosen_kernel(facts, settings)
    rule = PADDINGS[kernel]
    if kernel is Kernel.TRTLLM and settings.since(DESCRIBED):
        rule = NARROWER_TRTLLM
    hidden, ranks, down = facts.require("hidden_size"), settings.ranks_of_expert, module == DOWN
    part, outer = _up(-(-width // ranks), rule.width), _up(hidden, rule.hidden)
    if leaf == "bias":
        return rule.bias * (Fraction(outer, hidden) if down else Fraction(part * ranks, width))
    rows, row = (outer, part) if down else (2 * part, outer)
    if leaf == "weight_scale":
        rows, row = _up(rows, rule.scale_rows), _up(row, rule.scale_groups * GROUP)
    return Fraction(rows * row * ranks, width * hidden * (1 if down else 2))


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
