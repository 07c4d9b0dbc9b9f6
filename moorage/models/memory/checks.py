"""What vLLM refuses before it loads anything.

Source: `config/model.py` (`verify_with_parallel_config`, `_verify_with_expert_parallelism`) and
`model_executor/models/registry.py`.
"""

from __future__ import annotations

from moorage.models.memory.architectures import (
    ENCODERS,
    NO_PIPELINE,
    PLUGIN_ONLY,
    REMOVED,
    UNCOVERED,
    UNSUPPORTED,
)
from moorage.models.memory.facts import Facts
from moorage.models.memory.refusal import rejected, unknown
from moorage.models.memory.settings import MemorySettings


def require_startable(facts: Facts, settings: MemorySettings) -> None:
    """Refuse what vLLM refuses, and what the rules here do not cover.

    Raises:
        Refused: With the reason.
    """
    name, tp = facts.architecture, settings.tensor_parallel_size
    if name in REMOVED:
        raise rejected(f"{name} was supported in vLLM until v{REMOVED[name]}")
    if name in UNSUPPORTED:
        raise rejected(f"Model architectures ['{name}'] are not supported for now.")
    if name in PLUGIN_ONLY:
        raise rejected(f"{name} needs a plug-in")
    if facts.heads % tp:
        raise rejected(
            f"Total number of attention heads ({facts.heads}) must be divisible by tensor "
            f"parallel size ({tp})."
        )
    if settings.enable_expert_parallel and not facts.experts:
        raise rejected(
            "Number of experts in the model must be greater than 0 when expert parallelism is "
            "enabled."
        )
    if settings.pipeline_parallel_size > 1 and name in NO_PIPELINE:
        raise rejected("Pipeline parallelism is not supported for this model.")
    if settings.pipeline_parallel_size > facts.layers:
        raise rejected(
            f"{facts.layers} layers cannot fill {settings.pipeline_parallel_size} stages"
        )
    if settings.runner == "generate" and name in ENCODERS:
        raise rejected("This model does not support `--runner generate`.")
    if facts.model_type in UNCOVERED:
        raise unknown(f"model type {facts.model_type}: {UNCOVERED[facts.model_type]}")
