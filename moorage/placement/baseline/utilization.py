"""Which part of each accelerator the engine will take."""

from __future__ import annotations

import math

from moorage.placement.baseline.parameters import Parameters
from moorage.placement.baseline.refusal import ErrorClass, RefusedRequest
from moorage.placement.baseline.request import BaselineRequest

DEFAULT = 0.9
FLAG = "gpu-memory-utilization"
GENERATING = frozenset({"llm", "speech_to_text"})
POOLING_WITH_SHARE = frozenset(
    {"Qwen3ForCausalLM", "Qwen3ForSequenceClassification", "Qwen3VLForConditionalGeneration"}
)
"""Architectures for which vLLM takes its share even when they embed or rank."""

WITHOUT_CONFIG = frozenset({"image", "text_to_speech"})
"""Categories for which the peer does not read the model's configuration."""


def utilization(request: BaselineRequest, parameters: Parameters) -> float:
    """The share of each accelerator, 0.9 by default; 0 = the engine takes what it needs.

    Raises:
        RefusedRequest: `UNREADABLE` when the user's value is no number.
    """
    written = parameters.value(FLAG)
    if not written:
        return DEFAULT if _takes_share(request, parameters) else 0.0
    try:
        share = float(written)
    except ValueError:
        share = math.nan
    if not math.isfinite(share):
        raise RefusedRequest(ErrorClass.UNREADABLE, f"--{FLAG} {written} is not a number")
    return share


def reads_config(request: BaselineRequest, parameters: Parameters) -> bool:
    """Whether heads, vocabulary and architectures are known to the decision at all."""
    return not (WITHOUT_CONFIG & set(request.categories) or parameters.switch("omni"))


def _takes_share(request: BaselineRequest, parameters: Parameters) -> bool:
    if not request.categories or GENERATING & set(request.categories):
        return True
    known = reads_config(request, parameters)
    return known and bool(POOLING_WITH_SHARE & set(request.architectures))
