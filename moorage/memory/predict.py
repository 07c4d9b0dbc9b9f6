"""The exact prediction of weights and KV cache on each rank, or a refusal with the reason.

Source of the refusals: `config/model.py` (`verify_with_parallel_config`,
`_verify_with_expert_parallelism`), `config/parallel.py` and `model_executor/models/registry.py`.
"""

from collections.abc import Sequence

from moorage.memory import architectures
from moorage.memory.dtypes import engine_dtype, pools
from moorage.memory.facts import Facts
from moorage.memory.kv import (
    KVGroup,
    KVKind,
    LayerCache,
    blocks_per_request,
    group_layers,
    longest_fit,
)
from moorage.memory.layer_caches import layer_caches, usual_block
from moorage.memory.layers import (
    Mixer,
    cache_owners,
    is_bidirectional,
    layer_mixers,
    stage_ranges,
    window,
)
from moorage.memory.need import GroupMemory, MemoryPrediction, StageMemory
from moorage.memory.options import MemorySettings
from moorage.memory.refusal import consistent, rejected, rejected_if, unknown
from moorage.memory.sglang_cache import sglang_groups
from moorage.memory.states import STATES_WITH_PREFIXES_SINCE
from moorage.memory.weights import Tensors, stage_weights
from moorage.models.config import Config

ONE_KIND_OF_WINDOW = ("qwen2", "qwen3")
"""Model types whose window applies to all layers or to none (`qwen2.py:Qwen2Model`)."""


def require_startable(facts: Facts, settings: MemorySettings) -> None:
    """Refuse models and settings that vLLM refuses, or that the rules do not cover."""
    name, tp = facts.architecture, settings.tensor_parallel_size
    _require_there(name, settings)
    if facts.heads % tp:
        raise rejected(
            f"Total number of attention heads ({facts.heads}) must be divisible by tensor "
            f"parallel size ({tp})."
        )
    if tp % settings.decode_context_parallel_size:
        raise rejected(
            f"tp_size={tp} must be divisible by dcp_size={settings.decode_context_parallel_size}."
        )
    if settings.enable_expert_parallel and not facts.experts:
        raise rejected(
            "Number of experts in the model must be greater than 0 when expert parallelism is "
            "enabled."
        )
    if settings.pipeline_parallel_size > 1 and name in architectures.NO_PIPELINE:
        raise rejected("Pipeline parallelism is not supported for this model.")
    tied = facts.get("tie_word_embeddings") is not False
    if settings.pipeline_parallel_size > 1 and tied and name == "Ernie4_5_MoeForCausalLM":
        # Its class ties the head on each stage, although only the last stage has one.
        raise rejected(f"{name} cannot tie its head to its embedding over several stages")
    if settings.pipeline_parallel_size > facts.layers:
        raise rejected(
            f"{facts.layers} layers cannot fill {settings.pipeline_parallel_size} stages"
        )
    if settings.runner == "generate" and _only_pools(facts):
        raise rejected("This model does not support `--runner generate`.")
    _require_one_kind_of_window(facts)
    _require_owners_on_stage(facts, settings)
    for uncovered in (facts.model_type, name):
        if uncovered in architectures.UNCOVERED:
            raise unknown(f"model type {uncovered}: {architectures.UNCOVERED[uncovered]}")


def _require_there(name: str, settings: MemorySettings) -> None:
    """Refuse an architecture that the versions that may run do not have."""
    if name in architectures.REMOVED:
        last = architectures.REMOVED[name]
        raise rejected_if(settings.lacks(last), f"{name} was supported in vLLM until v{last}")
    if name in architectures.UNSUPPORTED:
        note = f"Model architectures ['{name}'] are not supported for now."
        raise rejected_if(not settings.extended, note)
    if name in architectures.PLUGIN_ONLY:
        raise rejected_if(settings.lacks("0.10.2"), f"{name} needs a plug-in")


def _only_pools(facts: Facts) -> bool:
    name = facts.architecture
    generates = name.endswith(architectures.GENERATING_MODELS)
    return name in architectures.ENCODERS or (name.endswith("Model") and not generates)


def _require_owners_on_stage(facts: Facts, settings: MemorySettings) -> None:
    for stage in stage_ranges(facts, settings):
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


@consistent()
def exact_prediction(
    config: Config, tensors: Tensors, settings: MemorySettings
) -> MemoryPrediction:
    """The memory that vLLM 0.32 takes for weights and KV cache on each rank; raises a refusal."""
    facts = Facts(config, settings.rope)
    require_startable(facts, settings)
    dtype = engine_dtype(facts, pools(facts, settings.runner))
    tokens = _longest_request(facts, settings)
    prefix = _caches_prefixes(facts, settings)
    caches = layer_caches(facts, settings, dtype, tokens, prefix)
    groups, paid = _groups(facts, settings, caches)
    ranges = stage_ranges(facts, settings)
    weights = stage_weights(facts, tensors, settings, dtype, ranges)
    # `config/vllm.py:max_in_flight_tokens`, async scheduling on the V2 model runner.
    in_flight = (settings.pipeline_parallel_size + 1) * settings.max_num_batched_tokens
    pool = settings.kv_pool_bytes
    specs = [{member.spec for member in group} for group in paid]
    request = blocks_per_request(specs, tokens, in_flight)
    stages = _stages(paid, ranges, weights, request, pool)
    block = max(stage.bytes_per_block for stage in stages)
    number = pool // block if block else None
    return MemoryPrediction(
        dtype=dtype,
        max_model_len=tokens,
        enable_prefix_caching=prefix,
        max_in_flight_tokens=in_flight,
        weight_bytes_per_rank=max(weights),
        block_size=_block_size(groups, settings),
        bytes_per_block=block,
        blocks_per_full_request=request,
        full_request_bytes=block * request,
        num_blocks=number,
        concurrency=None if number is None else number / request,
        # vLLM always holds one block back, the null block.
        max_fit_len=None if number is None else longest_fit(specs, number - 1, tokens, in_flight),
        full_request_fits=number is None or request <= number - 1,
        groups=tuple(_group(group, tokens, in_flight) for group in groups),
        stages=stages,
    )


def _groups(
    facts: Facts, settings: MemorySettings, caches: Sequence[LayerCache]
) -> tuple[tuple[KVGroup, ...], Sequence[KVGroup]]:
    """All groups, and those that take blocks; states of SGLang take none."""
    if settings.sglang and not any(cache.spec.kind is KVKind.CROSS for cache in caches):
        groups = sglang_groups(facts, settings, caches)
        return groups, [one for one in groups if one[0].spec.kind is not KVKind.MAMBA]
    groups = group_layers(caches, settings.hybrid_kv_cache_manager)
    return groups, groups


def _stages(
    groups: Sequence[KVGroup],
    ranges: Sequence[range],
    weights: Sequence[int],
    request: int,
    pool: int,
) -> tuple[StageMemory, ...]:
    # The groups share one pool, so the widest group counts.
    blocks = [max((_page_bytes(g, layers) for g in groups), default=0) for layers in ranges]
    return tuple(
        StageMemory(
            pp_rank=rank,
            layers=len(ranges[rank]),
            weight_bytes=weights[rank],
            bytes_per_block=block,
            full_request_bytes=block * request,
            num_blocks_alone=pool // block if block else None,
        )
        for rank, block in enumerate(blocks)
    )


def _page_bytes(group: KVGroup, layers: range) -> int:
    return sum(member.spec.page_bytes for member in group if member.layer in layers)


def _longest_request(facts: Facts, settings: MemorySettings) -> int:
    """`max_model_len`; refused if a prompt must fit in one step and the step is smaller.

    Source: `config/scheduler.py:verify_max_model_len`,
    `config/model.py:is_chunked_prefill_supported`.
    """
    tokens = facts.resolve_length(settings.max_model_len, settings.any_length)
    step = settings.max_num_batched_tokens
    whole = pools(facts, settings.runner) and is_bidirectional(facts)
    if step < tokens and (whole or facts.get("is_encoder_decoder")):
        raise rejected(f"max_num_batched_tokens ({step}) is smaller than max_model_len ({tokens}).")
    return tokens


def _caches_prefixes(facts: Facts, settings: MemorySettings) -> bool:
    """Whether vLLM caches prefixes. Source: `config/model.py:is_prefix_caching_supported`."""
    pooling = pools(facts, settings.runner)
    kinds = {mixer for layer in layer_mixers(facts) for mixer in layer}
    if Mixer.CROSS in kinds and not pooling:
        return False
    if settings.enable_prefix_caching is not None:
        return settings.enable_prefix_caching
    if kinds <= {Mixer.STATE}:
        # A model without attention counts as a decoder if it pools.
        return bool(kinds) and pooling
    return Mixer.STATE not in kinds or not settings.before(STATES_WITH_PREFIXES_SINCE)


def _block_size(groups: Sequence[KVGroup], settings: MemorySettings) -> int | None:
    specs = [group[0].spec for group in groups]
    attention = [spec.block_size for spec in specs if spec.kind is not KVKind.MAMBA]
    return min(attention, default=usual_block(settings) if groups else None)


def _group(members: KVGroup, tokens: int, in_flight: int) -> GroupMemory:
    specs = [member.spec for member in members]
    first = specs[0]
    # In a group of equal pages, the window of any layer counts.
    is_mixed = len({spec.page_bytes for spec in specs}) > 1
    return GroupMemory(
        layers=len(members),
        kind=first.kind.value,
        block_size=first.block_size,
        page_bytes=first.page_bytes,
        window=first.window if is_mixed else next(filter(None, (s.window for s in specs)), None),
        blocks_per_full_request=first.blocks_for(tokens, in_flight),
    )
