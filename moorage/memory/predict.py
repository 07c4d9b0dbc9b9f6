"""The prediction: weights and KV cache of one engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.memory.caches import layer_caches, usual_block
from moorage.memory.checks import require_length, require_startable
from moorage.memory.dtypes import engine_dtype, kv_dtype
from moorage.memory.facts import Facts
from moorage.memory.groups import KVGroup, LayerCache, group_layers
from moorage.memory.kv import blocks_per_request, bytes_per_block, longest_fit
from moorage.memory.layers import is_bidirectional, layer_mixers
from moorage.memory.mixers import Mixer
from moorage.memory.prediction import GroupMemory, MemoryPrediction, StageMemory
from moorage.memory.refusal import MemoryRefusal, Refused, consistent
from moorage.memory.runner import pools
from moorage.memory.settings import MemorySettings
from moorage.memory.specs import KVKind, KVSpec
from moorage.memory.stages import stage_layers
from moorage.memory.weights import stage_weights
from moorage.models.tensors import TensorHeader


def predict_memory(
    config: Mapping[str, Any], tensors: Mapping[str, TensorHeader], settings: MemorySettings
) -> MemoryPrediction | MemoryRefusal:
    """Predict what vLLM 0.32 takes for weights and KV cache on each rank.

    Args:
        config: Content of config.json.
        tensors: Headers of the checkpoint, by tensor name.
        settings: The engine.

    Returns:
        The numbers, or the reason why there are none.
    """
    try:
        with consistent():
            return _predict(Facts(config, settings.rope), tensors, settings)
    except Refused as refused:
        return refused.refusal


def _predict(
    facts: Facts, tensors: Mapping[str, TensorHeader], settings: MemorySettings
) -> MemoryPrediction:
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
    return _prediction(dtype, tokens, prefix, groups, stages, request, settings)


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
    request: int,
    settings: MemorySettings,
) -> MemoryPrediction:
    block = max(stage.bytes_per_block for stage in stages)
    alone = [s.num_blocks_alone for s in stages if s.num_blocks_alone is not None]
    number = min(alone, default=None)
    in_flight = settings.in_flight_tokens
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
