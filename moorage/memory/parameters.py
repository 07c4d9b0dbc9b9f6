"""Parameters that vLLM creates differently from the checkpoint.

Source: `create_weights` in `model_executor/layers/quantization/`, `GateLinear` in the model
classes, `head_dtype` in `config/model.py`; for experts
`fused_moe/oracle/fp8.py:resolve_fp8_moe_weight_block_shape` and
`moe_wna16.py`.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd

from moorage.common.refusal import Refusal
from moorage.memory.architectures import CLASSIFIER_ENDINGS
from moorage.memory.dtypes import quantisation, quantisation_block, quantisation_method
from moorage.memory.facts import Facts
from moorage.memory.layers import Mixer, attention_of
from moorage.memory.mxfp4 import METHOD, padding_factor
from moorage.memory.need import DESCRIBED
from moorage.memory.options import MemorySettings
from moorage.memory.refusal import rejected
from moorage.memory.sharding import TensorName
from moorage.models.source import TensorHeader

FLOAT32_NAMES = ("A_log", "A", "e_score_correction_bias", "correct_output_scale")
FLOAT32_LEAVES = ("weight_scale_inv", "weight_scale", "input_scale", "k_scale", "v_scale")
KEPT = (
    *("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64"),
    "BOOL",
)
"""Element types that vLLM keeps as in the checkpoint; it casts the others."""

ROUTERS = ("gate", "router.classifier", "moe.gate")

FLOAT32_ROUTERS: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys(
        (
            *("afmoe", "ernie4_5_moe", "glm4_moe", "glm4_moe_lite", "hy_v3"),
            *("longcat_flash", "minimax_m2", "param2moe", "step3p5", "bailing_moe_v3"),
            *("nemotron_h", "glm4v_moe_text"),
        ),
        ("", "float32"),
    ),
    **dict.fromkeys(("bailing_moe", "bailing_moe_v2"), ("router_dtype", None)),
    "bailing_hybrid": ("router_dtype", "fp32"),
    **dict.fromkeys(("mimo_v2", "mimo_v2_flash"), ("moe_router_dtype", "float32")),
}
"""Model types whose router has its own element type: the key and its default."""

CLASSIFIERS = (
    *("classifier", "score", "classifier.dense", "classifier.out_proj", "pooler.dense"),
    *("head.dense", "head.norm"),
)
"""Modules of a classifier's head, which is float32 (`head_dtype`)."""

FLOAT32_BY_TYPE: dict[str, tuple[str, ...]] = {
    "kimi_linear": ("q_conv1d", "k_conv1d", "v_conv1d", "dt_bias"),
    "lfm2_moe": ("expert_bias",),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), ("indexer.k_norm",)),
    **dict.fromkeys(("bailing_moe", "bailing_moe_v2", "afmoe", "hy_v3"), ("expert_bias",)),
}
"""Names that a model type keeps in float32."""


@dataclass(frozen=True)
class Kind:
    """A tensor without the numbers in its name, so that equal tensors are counted together."""

    name: TensorName
    header: TensorHeader


def created_dtype(facts: Facts, kind: Kind, dtype: str, packed: bool) -> str:
    """Element type of the parameter for a tensor; `dtype` is the type of unquantised parameters.

    With `packed`, several weights share one element, and scales have `dtype`.
    """
    name, names = kind.name, {kind.name.last, kind.name.last_two}
    if names.intersection(FLOAT32_BY_TYPE.get(facts.model_type, ())):
        return "F32"
    is_native = (facts.model_type, name.last) == ("olmo_hybrid", "A_log")
    if name.last in FLOAT32_NAMES and not is_native:
        return "F32"
    if kind.header.dtype in KEPT:
        return kind.header.dtype
    if name.leaf in FLOAT32_LEAVES and not packed:
        return "F32"
    if names.intersection(ROUTERS):
        key, default = FLOAT32_ROUTERS.get(facts.model_type, ("", None))
        own = (facts.get(key) if key else None) or default
        return "F32" if own in ("float32", "fp32") else dtype
    if facts.architecture.endswith(CLASSIFIER_ENDINGS) and names.intersection(CLASSIFIERS):
        return "F32"
    return dtype


def created_with(facts: Facts, kind: Kind) -> list[Kind]:
    """A tensor, and the parameters that vLLM creates with it although the checkpoint lacks them."""
    name, shape = kind.name, kind.header.shape
    gptq = quantisation_method(facts) == "gptq"
    if gptq and name.expert and name.leaf == "qweight":
        # `auto_gptq.py:AutoGPTQMoEMethod` creates biases for each expert, used or not.
        return [kind, _sibling(kind, "bias", shape[-1:])]
    if name.last == "k_proj" and _stands_for_values(facts, name):
        module = name.module.removesuffix(name.last) + "v_proj"
        return [kind, Kind(replace(name, module=module), kind.header)]
    if (facts.model_type, name.last, name.leaf) == ("whisper", "k_proj", "weight"):
        # It is merged with projections that have a bias.
        return [kind, _sibling(kind, "bias", shape[:1])]
    if name.module == "cls.predictions" and name.leaf == "bias":
        # `bert.py:BertMLMHead` creates a separate decoder; the checkpoint reuses the embedding.
        return [kind, _sibling(kind, "weight", (*shape, facts.require("hidden_size")))]
    return [kind]


def _stands_for_values(facts: Facts, name: TensorName) -> bool:
    """Whether keys and values share a projection in the checkpoint, not in vLLM (`gemma4.py`)."""
    if name.layer is None or not facts.get("attention_k_eq_v"):
        return False
    return attention_of(facts, name.layer) is Mixer.FULL


def _sibling(kind: Kind, leaf: str, shape: tuple[int, ...]) -> Kind:
    return Kind(replace(kind.name, leaf=leaf), TensorHeader(dtype="F16", shape=shape))


SMALLEST_BLOCK = 32
"""Elements of the smallest block or group that the MoE kernels support."""

LEAST_WIDTHS = {"kimi_linear": ("min_moe_intermediate_per_partition", 256)}
"""Model types that pad each rank's part of an expert: the key of its least width, its default."""

EXPERT_WIDTH_KEYS = ("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")


def expert_factor(facts: Facts, kind: Kind, settings: MemorySettings) -> Fraction:
    """The ratio of elements that vLLM creates for an expert's tensor to those in the checkpoint.

    If a rank's part of an expert cuts a block or a group, vLLM uses smaller ones, so there are more
    scales; some kernels and classes pad the part itself. Versions that cannot cut a block refuse.

    Raises:
        Refusal: When no allowed size divides the part.
    """
    leaf, shape = kind.name.leaf, kind.header.shape
    method = quantisation_method(facts)
    if method == "fp8" and leaf == "weight_scale_inv" and len(shape) > 1:
        return _block_factor(facts, kind, settings)
    if method in ("awq", "gptq") and shape[0] > 1:
        times = _group_factor(facts, settings)
        if times > 1 and method == "gptq" and leaf in ("qzeros", "bias"):
            return Fraction(0)  # `moe_wna16.py` takes over and creates neither
        return times if leaf in ("scales", "qzeros") else Fraction(1)
    if method == METHOD:
        width, name = facts.positive(EXPERT_WIDTH_KEYS), kind.name
        whole = Fraction(1)
        return padding_factor(facts, settings, width, name.last, leaf) if width else whole
    if facts.model_type in LEAST_WIDTHS and settings.tensor_parallel_size > 1:
        return _width_factor(facts, settings)
    return Fraction(1)


def _block_factor(facts: Facts, kind: Kind, settings: MemorySettings) -> Fraction:
    block, width = quantisation_block(facts), facts.positive(EXPERT_WIDTH_KEYS)
    if not block or not width:
        return Fraction(1)
    hidden = facts.require("hidden_size")
    tp = settings.ranks_of_expert
    part = width // tp
    if part % block[0] == 0 and (tp == 1 or part % block[1] == 0):
        return Fraction(1)
    size = gcd(*block, part, hidden)
    # `refine_fp8_moe_block_shape` makes blocks smaller; older versions and SGLang do not start.
    if size < SMALLEST_BLOCK or not settings.since(DESCRIBED):
        raise _cut(part, block[0])
    experts = kind.header.shape[0] if len(kind.header.shape) == 3 else 1
    return Fraction(experts * width * hidden, size * size * kind.header.elements)


def _group_factor(facts: Facts, settings: MemorySettings) -> Fraction:
    group, width = quantisation(facts).get("group_size"), facts.positive(EXPERT_WIDTH_KEYS)
    if not isinstance(group, int) or not group or not width:
        return Fraction(1)
    tp = settings.ranks_of_expert
    part, size = width // tp, group
    while part % size or facts.require("hidden_size") % size:
        size //= 2
        if size < SMALLEST_BLOCK:
            raise _cut(part, group)
    return Fraction(group, size)


def _width_factor(facts: Facts, settings: MemorySettings) -> Fraction:
    """Source: `models/kimi_k3/nvidia/model.py`, `padded_moe_intermediate_size`."""
    width, tp = facts.positive(EXPERT_WIDTH_KEYS), settings.tensor_parallel_size
    key, default = LEAST_WIDTHS[facts.model_type]
    least = facts.number(key) or default
    if settings.enable_expert_parallel or width // tp >= least:
        return Fraction(1)
    return Fraction(least * tp, width)


def _cut(part: int, size: int) -> Refusal:
    return rejected(
        f"an expert's part of {part} on each rank cuts quantisation blocks of {size};"
        " `--enable-expert-parallel` (SGLang: `--ep-size`) keeps experts whole"
    )
