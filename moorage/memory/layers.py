"""The kind of attention or state in each decoder layer, and the pipeline stage that runs it.

Source: the `layer_types` of the configuration classes of transformers 5, the constructors in
`model_executor/models/`, and `distributed/utils.py:get_pp_indices` for the stages.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate

from moorage.memory.architectures import ENCODERS
from moorage.memory.facts import Facts
from moorage.memory.options import MemorySettings
from moorage.memory.refusal import rejected, unknown


class Mixer(StrEnum):
    """How a layer mixes tokens."""

    FULL = "full"
    SLIDING = "sliding"
    CHUNKED = "chunked"
    STATE = "state"
    CROSS = "cross"
    INDEX = "index"


ATTENTIONS = (Mixer.FULL, Mixer.SLIDING, Mixer.CHUNKED)

NAMES: dict[str, tuple[Mixer, ...]] = {
    **dict.fromkeys(("full_attention", "attention", "global", "global_attention"), (Mixer.FULL,)),
    **dict.fromkeys(("*", "E*"), (Mixer.FULL,)),
    **dict.fromkeys(("sliding_attention", "local_attention"), (Mixer.SLIDING,)),
    "chunked_attention": (Mixer.CHUNKED,),
    **dict.fromkeys(("linear_attention", "mamba", "mamba2", "conv", "M"), (Mixer.STATE,)),
    "short_conv": (Mixer.STATE,),
    "hybrid": (Mixer.STATE, Mixer.FULL),
    **dict.fromkeys(("mlp", "moe", "-", "E"), ()),
    "indexed_attention": (Mixer.INDEX, Mixer.FULL),
    # mimo_v2.py: 1 marks a layer with a window.
    "0": (Mixer.FULL,),
    "1": (Mixer.SLIDING,),
}
"""Mixers of a layer by the names that configurations use."""

WINDOW_PERIOD = "sliding_window_pattern"

PERIODS: dict[str, tuple[str, int, Mixer]] = {
    **dict.fromkeys(("gemma2", "gpt_oss", "vaultgemma"), (WINDOW_PERIOD, 2, Mixer.SLIDING)),
    **dict.fromkeys(
        ("cohere2", "cohere2_moe", "cwm", "exaone4", "exaone_moe", "granite_swa", "olmo3"),
        (WINDOW_PERIOD, 4, Mixer.SLIDING),
    ),
    "gemma3n_text": (WINDOW_PERIOD, 5, Mixer.SLIDING),
    **dict.fromkeys(("gemma3_text", "gemma4_text"), (WINDOW_PERIOD, 6, Mixer.SLIDING)),
    "afmoe": ("global_attn_every_n_layers", 4, Mixer.SLIDING),
    "smollm3": ("no_rope_layer_interval", 4, Mixer.FULL),
    "llama4_text": ("no_rope_layer_interval", 4, Mixer.CHUNKED),
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "olmo_hybrid"),
        ("full_attention_interval", 4, Mixer.STATE),
    ),
}
"""Model types whose every n-th layer is full: the key of n, its default, the other layers."""

FULL_FIRST = ("cwm", "granite_swa")
"""Model types whose full layer comes first in each period, not last."""

FULL_BY_DEFAULT = ("laguna", "mellum")
"""Model types that use their window only in layers where `layer_types` says so."""

WINDOW_OFF_BY_DEFAULT = ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3")
"""Model types that slide only if `use_sliding_window` says so."""

WINDOW_PLUS_ONE = ("cohere2", "modernbert")
"""Model types whose window also counts the token itself (`commandr.py`, `modernbert.py`)."""

LAYER_NAMES = ("layer_types", "layers_block_type")
LAYER_PATTERNS = ("hybrid_override_pattern", "hybrid_layer_pattern")

WHOLE_MODELS: dict[str, tuple[Mixer, ...]] = {
    "falcon_h1": (Mixer.FULL, Mixer.STATE),
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba"), (Mixer.STATE,)),
    "longcat_flash": (Mixer.FULL, Mixer.FULL),
    # Every attention has a sparse indexer with its own cache.
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), (Mixer.INDEX, Mixer.FULL)),
}
"""Mixers of model types whose layers are all alike."""


def stage_ranges(facts: Facts, settings: MemorySettings) -> tuple[range, ...]:
    """The decoder layers of each pipeline stage.

    Remaining layers go to the stages from the last but one backwards, because the last stage also
    has the norm and the head, and the first the embedding.

    Raises:
        Refusal: When the stated layers are not those of the model and its stages.
    """
    layers, stages = facts.layers, settings.pipeline_parallel_size
    if counts := list(settings.layer_partition):
        if len(counts) != stages or sum(counts) != layers or min(counts) < 0:
            stated = ",".join(map(str, counts))
            raise rejected(
                f"VLLM_PP_LAYER_PARTITION={stated} does not spread {layers} layers over"
                f" {stages} pipeline stages"
            )
    else:
        counts = [layers // stages] * stages
        for back in range(2, layers % stages + 2):
            counts[-back] += 1
    ends = accumulate(counts)
    return tuple(range(end - count, end) for end, count in zip(ends, counts, strict=True))


def layer_mixers(facts: Facts) -> list[tuple[Mixer, ...]]:
    """The mixers with their own cache in each decoder layer, in order."""
    if is_bidirectional(facts):
        return [()] * facts.layers
    if facts.get("is_encoder_decoder"):
        return [(Mixer.FULL, Mixer.CROSS)] * facts.layers
    if facts.model_type in WHOLE_MODELS:
        return [WHOLE_MODELS[facts.model_type]] * facts.layers
    first = layers_with_own_cache(facts)
    return [own if i < first else () for i, own in enumerate(_each(facts))]


def layers_with_own_cache(facts: Facts) -> int:
    """The number of layers before those that use an earlier layer's cache."""
    return max(0, facts.layers - facts.number("num_kv_shared_layers"))


def cache_owners(facts: Facts) -> dict[int, int]:
    """For each layer without a cache of its own, the layer whose cache it uses.

    The owner is the last layer of the same kind that has a cache (`gemma4.py`, `gemma3n.py`).
    """
    first = layers_with_own_cache(facts)
    if first == facts.layers:
        return {}
    mixers = _each(facts)
    last = {mixer: index for index, mixer in enumerate(mixers[:first])}
    return {i: last[mixers[i]] for i in range(first, facts.layers) if mixers[i] in last}


def attention_of(facts: Facts, layer: int) -> Mixer | None:
    """The attention of a layer, whether or not it has its own cache; None = no attention."""
    mixers = [mixer for mixer in _each(facts)[layer] if mixer in ATTENTIONS]
    return mixers[0] if mixers else None


def is_bidirectional(facts: Facts) -> bool:
    """Whether each token sees later tokens, so that no layer keeps a KV cache."""
    if facts.architecture in ENCODERS or facts.get("is_causal") is False:
        return True
    bidirectional = facts.get("use_bidirectional_attention")
    return facts.architecture == "Gemma3TextModel" and bool(bidirectional)


def window(facts: Facts) -> int | None:
    """Tokens that a sliding layer sees; None = no layer slides."""
    used, size = facts.get("use_sliding_window"), facts.get("sliding_window")
    is_off = used is False or (not used and facts.model_type in WINDOW_OFF_BY_DEFAULT)
    if is_off or not isinstance(size, int) or size <= 0:
        return None
    return size + 1 if facts.model_type in WINDOW_PLUS_ONE else size


@lru_cache(maxsize=8)
def _each(facts: Facts) -> list[tuple[Mixer, ...]]:
    """The mixers of each layer; cached, because each tensor needs them."""
    mixers = _named(facts) or _periodic(facts) or _uniform(facts)
    if len(mixers) < facts.layers:
        raise unknown(f"the configuration names {len(mixers)} of {facts.layers} layers")
    return mixers


def _named(facts: Facts) -> list[tuple[Mixer, ...]] | None:
    """The mixers of each layer as the configuration names them; None = it does not."""
    kind = facts.model_type
    if kind == "llama4_text":
        local = Mixer.CHUNKED if facts.get("attention_chunk_size") else Mixer.FULL
        ropes = facts.sequence("no_rope_layers")
        return [(local,) if rope else (Mixer.FULL,) for rope in ropes] or None
    if kind == "jamba":
        period = max(1, facts.require("attn_layer_period"))
        offset = facts.require("attn_layer_offset")
        return _full_or_state([i % period == offset for i in range(facts.layers)])
    if kind == "kimi_linear":
        full = set(map(str, facts.sequence("full_attn_layers", "linear_attn_config")))
        return _full_or_state([str(i + 1) in full for i in range(facts.layers)])
    if kind == "lfm2" and facts.get("full_attn_idxs") is not None:
        full = set(map(str, facts.sequence("full_attn_idxs")))
        return _full_or_state([str(i) in full for i in range(facts.layers)])
    if kind in WINDOW_OFF_BY_DEFAULT and window(facts) is None:
        return [(Mixer.FULL,)] * facts.layers
    for key in (*LAYER_NAMES, *LAYER_PATTERNS):
        if names := facts.sequence(key):
            return [_mixers(facts, str(name)) for name in names[: facts.layers]]
    return None


def _full_or_state(full: Sequence[bool]) -> list[tuple[Mixer, ...]]:
    return [(Mixer.FULL,) if is_full else (Mixer.STATE,) for is_full in full]


def _mixers(facts: Facts, name: str) -> tuple[Mixer, ...]:
    if name not in NAMES:
        raise unknown(f"layer type {name!r} is not known")
    mixers = NAMES[name]
    if Mixer.SLIDING in mixers and window(facts) is None:
        return (Mixer.FULL,)
    return mixers


def _periodic(facts: Facts) -> list[tuple[Mixer, ...]] | None:
    if facts.model_type not in PERIODS:
        return None
    key, default, other = PERIODS[facts.model_type]
    period = facts.number(key) or facts.number(f"_{key}") or len(facts.sequence(key)) or default
    if other is Mixer.SLIDING and window(facts) is None:
        other = Mixer.FULL
    shift = 0 if facts.model_type in FULL_FIRST else 1
    # In smollm3, every n-th layer slides and the others are full.
    slides = facts.model_type == "smollm3" and window(facts) is not None
    nth = Mixer.SLIDING if slides else Mixer.FULL
    return [(other,) if (i + shift) % period else (nth,) for i in range(facts.layers)]


def _uniform(facts: Facts) -> list[tuple[Mixer, ...]]:
    size = window(facts)
    if size is None or facts.model_type in FULL_BY_DEFAULT:
        return [(Mixer.FULL,)] * facts.layers
    first = facts.number("max_window_layers") if facts.model_type in WINDOW_OFF_BY_DEFAULT else 0
    return [(Mixer.SLIDING,) if i >= first else (Mixer.FULL,) for i in range(facts.layers)]
