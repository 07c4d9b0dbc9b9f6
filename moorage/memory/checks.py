"""What vLLM refuses before it loads anything.

Source: `config/model.py` (`verify_with_parallel_config`, `_verify_with_expert_parallelism`) and
`model_executor/models/registry.py`.
"""

from __future__ import annotations

from moorage.memory.architectures import (
    ENCODERS,
    GENERATING_MODELS,
    NO_PIPELINE,
    PLUGIN_ONLY,
    REMOVED,
    UNCOVERED,
    UNSUPPORTED,
)
from moorage.memory.facts import Facts
from moorage.memory.layers import cache_owners, layer_mixers, window
from moorage.memory.refusal import rejected, unknown
from moorage.memory.settings import MemorySettings
from moorage.memory.stages import stage_layers

ONE_KIND_OF_WINDOW = ("qwen2", "qwen3")
"""Model types whose window holds for all layers or for none (`qwen2.py:Qwen2Model`)."""


TIES_ON_EACH_STAGE = ("Ernie4_5_MoeForCausalLM",)
"""Architectures that tie the head on each stage, though only the last has one, and fail so."""


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
    if settings.pipeline_parallel_size > 1 and _ties_everywhere(facts):
        raise rejected(f"{name} cannot tie its head to its embedding over several stages")
    if settings.pipeline_parallel_size > facts.layers:
        raise rejected(
            f"{facts.layers} layers cannot fill {settings.pipeline_parallel_size} stages"
        )
    if settings.runner == "generate" and _only_pools(facts):
        raise rejected("This model does not support `--runner generate`.")
    _require_one_kind_of_window(facts)
    _require_owners_on_stage(facts, settings)
    if facts.model_type in UNCOVERED:
        raise unknown(f"model type {facts.model_type}: {UNCOVERED[facts.model_type]}")


def require_length(settings: MemorySettings, tokens: int, in_pieces: bool) -> None:
    """Refuse requests that no step can hold. Source: `config/scheduler.py:verify_max_model_len`.

    Args:
        settings: The engine.
        tokens: `max_model_len`.
        in_pieces: Whether a prompt may be spread over several steps.

    Raises:
        Refused: When a prompt cannot be spread and a step holds fewer tokens.
    """
    step = settings.max_num_batched_tokens
    if step < tokens and not in_pieces:
        raise rejected(f"max_num_batched_tokens ({step}) is smaller than max_model_len ({tokens}).")


def _ties_everywhere(facts: Facts) -> bool:
    tied = facts.get("tie_word_embeddings") is not False
    return tied and facts.architecture in TIES_ON_EACH_STAGE


def _only_pools(facts: Facts) -> bool:
    name = facts.architecture
    return name in ENCODERS or (name.endswith("Model") and not name.endswith(GENERATING_MODELS))


def _require_owners_on_stage(facts: Facts, settings: MemorySettings) -> None:
    for stage in stage_layers(facts.layers, settings.pipeline_parallel_size):
        for layer, owner in cache_owners(facts).items():
            if layer in stage and owner not in stage:
                raise rejected(
                    f"layer {layer} uses the KV cache of layer {owner}, which lies on another "
                    "pipeline stage"
                )


def _require_one_kind_of_window(facts: Facts) -> None:
    if facts.model_type not in ONE_KIND_OF_WINDOW or window(facts) is None:
        return
    kinds = {mixer for layer in layer_mixers(facts) for mixer in layer}
    if len(kinds) > 1 and facts.get("max_window_layers") != facts.layers:
        raise rejected("Sliding window for some but all layers is not supported.")
