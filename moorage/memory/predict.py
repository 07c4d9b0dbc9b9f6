"""The exact prediction: weights and KV cache on each rank, or the reason why there is none.

Source of the refusals: `config/model.py` (`verify_with_parallel_config`,
`_verify_with_expert_parallelism`) and `model_executor/models/registry.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moorage.common.refusal import Refusal
from moorage.memory.architectures import (
    ENCODERS,
    GENERATING_MODELS,
    NO_PIPELINE,
    PLUGIN_ONLY,
    REMOVED,
    UNCOVERED,
    UNSUPPORTED,
)
from moorage.memory.dtypes import engine_dtype, kv_dtype, pools
from moorage.memory.facts import Facts
from moorage.memory.kv import (
    KVGroup,
    KVKind,
    KVSpec,
    LayerCache,
    blocks_per_request,
    bytes_per_block,
    group_layers,
    longest_fit,
)
from moorage.memory.layer_caches import layer_caches, usual_block
from moorage.memory.layers import (
    Mixer,
    cache_owners,
    is_bidirectional,
    layer_mixers,
    stage_layers,
    window,
)
from moorage.memory.need import GroupMemory, MemoryPrediction, StageMemory
from moorage.memory.options import MemorySettings
from moorage.memory.refusal import caught, consistent, rejected, unknown
from moorage.memory.weights import Tensors, stage_weights
from moorage.models.config import Config
from moorage.models.source import TensorHeader

ONE_KIND_OF_WINDOW = ("qwen2", "qwen3")
"""Model types whose window holds for all layers or for none (`qwen2.py:Qwen2Model`)."""


TIES_ON_EACH_STAGE = ("Ernie4_5_MoeForCausalLM",)
"""Architectures that tie the head on each stage, though only the last has one, and fail so."""


def require_startable(facts: Facts, settings: MemorySettings) -> None:
    """Refuse what vLLM refuses, and what the rules here do not cover.

    Raises:
        Refusal: With the reason.
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
        Refusal: When a prompt cannot be spread and a step holds fewer tokens.
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


def predict_memory(
    config: Config, tensors: Mapping[str, TensorHeader], settings: MemorySettings
) -> MemoryPrediction | Refusal:
    """Predict what vLLM 0.32 takes for weights and KV cache on each rank, or why it is unknown."""
    return caught(lambda: exact_prediction(config, Tensors(tensors), settings))


@consistent()
def exact_prediction(
    config: Config, tensors: Tensors, settings: MemorySettings
) -> MemoryPrediction:
    """The numbers of `predict_memory`.

    Raises:
        Refusal: When there are none.
    """
    facts = Facts(config, settings.rope)
    require_startable(facts, settings)
    pooling = pools(facts, settings.runner)
    dtype = engine_dtype(facts, pooling)
    tokens = facts.resolve_length(settings.max_model_len)
    require_length(settings, tokens, _spreads_prompts(facts, pooling))
    prefix = _caches_prefixes(facts, settings)
    element = kv_dtype(facts, settings.kv_cache_dtype, dtype)
    caches = layer_caches(facts, settings, dtype, element, tokens, prefix)
    groups = group_layers(caches, settings.hybrid_kv_cache_manager)
    ranges = stage_layers(facts.layers, settings.pipeline_parallel_size)
    weights = stage_weights(facts, tensors, settings, dtype, ranges)
    request = blocks_per_request(groups, tokens, settings.in_flight_tokens)
    stages = _stages(groups, ranges, weights, request, settings)
    return _prediction(dtype, tokens, prefix, groups, stages, settings)


def _spreads_prompts(facts: Facts, pooling: bool) -> bool:
    """Source: `config/model.py:is_chunked_prefill_supported`."""
    if facts.get("is_encoder_decoder"):
        return False
    return not (pooling and is_bidirectional(facts))


def _caches_prefixes(facts: Facts, settings: MemorySettings) -> bool:
    """Source: `config/model.py:is_prefix_caching_supported`."""
    kinds = {mixer for layer in layer_mixers(facts) for mixer in layer}
    pooling = pools(facts, settings.runner)
    if Mixer.CROSS in kinds and not pooling:
        return False
    if settings.enable_prefix_caching is not None:
        return settings.enable_prefix_caching
    if kinds <= {Mixer.STATE}:
        # A model without attention counts as a decoder once it pools.
        return bool(kinds) and pooling
    return True


def _stages(
    groups: Sequence[KVGroup],
    ranges: Sequence[range],
    weights: Sequence[int],
    request: int,
    settings: MemorySettings,
) -> tuple[StageMemory, ...]:
    stages = []
    for rank, layers in enumerate(ranges):
        block = bytes_per_block([group.on_stage(layers) for group in groups])
        stages.append(
            StageMemory(
                pp_rank=rank,
                layers=len(layers),
                weight_bytes=weights[rank],
                bytes_per_block=block,
                full_request_bytes=block * request,
                num_blocks_alone=settings.kv_pool_bytes // block if block else None,
            )
        )
    return tuple(stages)


def _prediction(
    dtype: str,
    tokens: int,
    prefix: bool,
    groups: Sequence[KVGroup],
    stages: Sequence[StageMemory],
    settings: MemorySettings,
) -> MemoryPrediction:
    block = max(stage.bytes_per_block for stage in stages)
    alone = [s.num_blocks_alone for s in stages if s.num_blocks_alone is not None]
    number = min(alone, default=None)
    in_flight = settings.in_flight_tokens
    request = blocks_per_request(groups, tokens, in_flight)
    # One block, the null block, is always held back.
    fit = None if number is None else longest_fit(groups, number - 1, tokens, in_flight)
    attention = [
        group.members[0].spec.block_size
        for group in groups
        if group.members[0].spec.kind is not KVKind.MAMBA
    ]
    return MemoryPrediction(
        dtype=dtype,
        max_model_len=tokens,
        enable_prefix_caching=prefix,
        max_in_flight_tokens=in_flight,
        weight_bytes_per_rank=max(stage.weight_bytes for stage in stages),
        block_size=min(attention, default=usual_block(settings) if groups else None),
        bytes_per_block=block,
        blocks_per_full_request=request,
        full_request_bytes=block * request,
        num_blocks=number,
        concurrency=None if number is None else number / request,
        max_fit_len=fit,
        full_request_fits=number is None or request <= number - 1,
        groups=tuple(_group(group.members, tokens, in_flight) for group in groups),
        stages=tuple(stages),
    )


def _group(members: Sequence[LayerCache], tokens: int, in_flight: int) -> GroupMemory:
    spec = members[0].spec
    return GroupMemory(
        layers=len(members),
        kind=spec.kind.value,
        block_size=spec.block_size,
        page_bytes=spec.page_bytes,
        window=_common_window([member.spec for member in members]),
        blocks_per_full_request=spec.blocks_for(tokens, in_flight),
    )


def _common_window(specs: Sequence[KVSpec]) -> int | None:
    """The window of a group; one that is kept whole has that of any of its layers."""
    if len({spec.page_bytes for spec in specs}) > 1:
        return specs[0].window
    return next((spec.window for spec in specs if spec.window), None)
