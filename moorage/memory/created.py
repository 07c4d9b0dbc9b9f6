"""Element types and parameters as vLLM creates them, where the checkpoint says something else.

Source: `create_weights` in `model_executor/layers/quantization/`, `GateLinear` in the model
classes, `head_dtype` in `config/model.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from moorage.memory.architectures import CLASSIFIER_ENDINGS
from moorage.memory.facts import Facts
from moorage.memory.layers import attention_of
from moorage.memory.mixers import Mixer
from moorage.memory.names import TensorName
from moorage.memory.quantisation import quantisation_method
from moorage.models.tensors import TensorHeader

FLOAT32_NAMES = ("A_log", "A", "e_score_correction_bias", "correct_output_scale")
FLOAT32_LEAVES = ("weight_scale_inv", "weight_scale", "input_scale", "k_scale", "v_scale")
KEPT = (
    *("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64"),
    "BOOL",
)
"""Element types that vLLM creates as the checkpoint has them; the others are cast."""

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
"""Model types whose router has an element type of its own: its key and the default."""

CLASSIFIERS = (
    *("classifier", "score", "classifier.dense", "classifier.out_proj", "pooler.dense"),
    *("head.dense", "head.norm"),
)
"""Modules of a classifier's head, which is float32 (`head_dtype`)."""

NATIVE_FLOAT: dict[str, tuple[str, ...]] = {"olmo_hybrid": ("A_log",)}
"""Names that a model type keeps in the engine's type after all."""

FLOAT32_BY_TYPE: dict[str, tuple[str, ...]] = {
    "kimi_linear": ("q_conv1d", "k_conv1d", "v_conv1d", "dt_bias"),
    "lfm2_moe": ("expert_bias",),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), ("indexer.k_norm",)),
    **dict.fromkeys(("bailing_moe", "bailing_moe_v2", "afmoe", "hy_v3"), ("expert_bias",)),
}
"""Names that one model type keeps in float32."""


BIASED = {"whisper": ("k_proj",)}
"""Layers that get a bias when they are merged with others that have one."""


@dataclass(frozen=True)
class Kind:
    """A tensor without the numbers in its name: equal ones are counted once.

    Attributes:
        name: Its name.
        header: Its element type and shape.
    """

    name: TensorName
    header: TensorHeader


def created_dtype(facts: Facts, kind: Kind, dtype: str, packed: bool) -> str:
    """Element type of a parameter.

    Args:
        facts: The model.
        kind: The tensor in the checkpoint.
        dtype: Element type of unquantised parameters.
        packed: Whether several weights share one element, which leaves scales in `dtype`.
    """
    name = kind.name
    own = FLOAT32_BY_TYPE.get(facts.model_type, ())
    if name.last in own or name.last_two in own:
        return "F32"
    if name.last in FLOAT32_NAMES and name.last not in NATIVE_FLOAT.get(facts.model_type, ()):
        return "F32"
    if kind.header.dtype in KEPT:
        return kind.header.dtype
    if name.leaf in FLOAT32_LEAVES and not packed:
        return "F32"
    if name.last in ROUTERS or name.last_two in ROUTERS:
        return _router_dtype(facts, dtype)
    classifies = facts.architecture.endswith(CLASSIFIER_ENDINGS)
    if classifies and (name.last in CLASSIFIERS or name.last_two in CLASSIFIERS):
        return "F32"
    return dtype


def completed(facts: Facts, kind: Kind) -> list[Kind]:
    """A tensor and the parameters that vLLM creates besides it without one in the checkpoint."""
    name, shape = kind.name, kind.header.shape
    gptq = quantisation_method(facts) == "gptq"
    if gptq and name.expert and name.leaf == "qweight":
        # `auto_gptq.py:AutoGPTQMoEMethod` gives each expert biases, used or not.
        return [kind, _beside(kind, "bias", shape[-1:])]
    if name.last == "k_proj" and _stands_for_values(facts, name):
        module = name.module.removesuffix(name.last) + "v_proj"
        return [kind, Kind(replace(name, module=module), kind.header)]
    if name.last in BIASED.get(facts.model_type, ()) and name.leaf == "weight":
        return [kind, _beside(kind, "bias", shape[:1])]
    if name.module == "cls.predictions" and name.leaf == "bias":
        # `bert.py:BertMLMHead` has a decoder of its own, where the checkpoint has the embedding.
        return [kind, _beside(kind, "weight", (*shape, facts.whole("hidden_size")))]
    return [kind]


def _stands_for_values(facts: Facts, name: TensorName) -> bool:
    """Whether keys and values have one projection in the checkpoint, but two here (`gemma4.py`)."""
    if name.layer is None or not facts.get("attention_k_eq_v"):
        return False
    return attention_of(facts, name.layer) is Mixer.FULL


def _beside(kind: Kind, leaf: str, shape: tuple[int, ...]) -> Kind:
    name = kind.name
    other = TensorName(name.layer, name.module, leaf, expert=name.expert, stacked=name.stacked)
    return Kind(other, TensorHeader(dtype="F16", shape=shape))


def _router_dtype(facts: Facts, dtype: str) -> str:
    key, default = FLOAT32_ROUTERS.get(facts.model_type, ("", None))
    named = (facts.get(key) if key else None) or default
    return "F32" if named in ("float32", "fp32") else dtype
