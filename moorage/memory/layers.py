"""Which kind of attention or state each decoder layer has."""

from __future__ import annotations

from functools import lru_cache

from moorage.memory.architectures import ENCODERS
from moorage.memory.facts import Facts
from moorage.memory.mixers import (
    ATTENTIONS,
    BLOCK_NAME_KEYS,
    FULL_BY_DEFAULT,
    FULL_FIRST,
    LOCAL_AT_PERIOD,
    MAYBE_BIDIRECTIONAL,
    NAMES,
    PERIODS,
    WHOLE_MODELS,
    WINDOW_OFF_BY_DEFAULT,
    WINDOW_PLUS_ONE,
    Mixer,
)
from moorage.memory.refusal import unknown


def layer_mixers(facts: Facts) -> list[tuple[Mixer, ...]]:
    """The mixers with a cache of every decoder layer, in order."""
    if is_bidirectional(facts):
        return [()] * facts.layers
    if facts.get("is_encoder_decoder"):
        return [(Mixer.FULL, Mixer.CROSS)] * facts.layers
    if facts.model_type in WHOLE_MODELS:
        return [WHOLE_MODELS[facts.model_type]] * facts.layers
    first = layers_with_own_cache(facts)
    return [own if i < first else () for i, own in enumerate(_each(facts))]


def layers_with_own_cache(facts: Facts) -> int:
    """Layers before those that use the cache of an earlier layer."""
    return max(0, facts.layers - facts.number("num_kv_shared_layers"))


def cache_owners(facts: Facts) -> dict[int, int]:
    """For each layer without a cache of its own, the layer whose cache it uses.

    It is the last layer of its kind that has one (`gemma4.py`, `gemma3n.py`).
    """
    first = layers_with_own_cache(facts)
    if first == facts.layers:
        return {}
    mixers = _each(facts)
    last = {mixer: index for index, mixer in enumerate(mixers[:first])}
    return {i: last[mixers[i]] for i in range(first, facts.layers) if mixers[i] in last}


def attention_of(facts: Facts, layer: int) -> Mixer | None:
    """The attention of a layer, with a cache of its own or not; None where it has none."""
    mixers = [mixer for mixer in _each(facts)[layer] if mixer in ATTENTIONS]
    return mixers[0] if mixers else None


def is_bidirectional(facts: Facts) -> bool:
    """Whether no layer keeps a KV cache, as each token sees those after it."""
    if facts.architecture in ENCODERS or facts.get("is_causal") is False:
        return True
    return facts.architecture in MAYBE_BIDIRECTIONAL and bool(
        facts.get("use_bidirectional_attention")
    )


def window(facts: Facts) -> int | None:
    """Tokens that a sliding layer sees; None when nothing slides."""
    if facts.model_type in WINDOW_OFF_BY_DEFAULT and not facts.get("use_sliding_window"):
        return None
    if facts.get("use_sliding_window") is False:
        return None
    size = facts.get("sliding_window")
    if not isinstance(size, int) or size <= 0:
        return None
    return size + 1 if facts.model_type in WINDOW_PLUS_ONE else size


@lru_cache(maxsize=8)
def _each(facts: Facts) -> list[tuple[Mixer, ...]]:
    """Remembered, as it is asked for each tensor."""
    mixers = _named(facts) or _periodic(facts) or _uniform(facts)
    if len(mixers) < facts.layers:
        raise unknown(f"the configuration names {len(mixers)} of {facts.layers} layers")
    return mixers


def _named(facts: Facts) -> list[tuple[Mixer, ...]] | None:
    if facts.model_type == "llama4_text":
        ropes = facts.listed("no_rope_layers")
        if not ropes:
            return None
        local = Mixer.CHUNKED if facts.get("attention_chunk_size") else Mixer.FULL
        return [(local,) if rope else (Mixer.FULL,) for rope in ropes]
    if facts.model_type == "jamba":
        period, offset = max(1, facts.whole("attn_layer_period")), facts.whole("attn_layer_offset")
        return [
            (Mixer.FULL,) if i % period == offset else (Mixer.STATE,) for i in range(facts.layers)
        ]
    if facts.model_type == "kimi_linear":
        full = set(map(str, facts.listed("full_attn_layers", "linear_attn_config")))
        return [
            (Mixer.FULL,) if str(i + 1) in full else (Mixer.STATE,) for i in range(facts.layers)
        ]
    if facts.model_type == "lfm2" and facts.get("full_attn_idxs") is not None:
        full = set(map(str, facts.listed("full_attn_idxs")))
        return [(Mixer.FULL,) if str(i) in full else (Mixer.STATE,) for i in range(facts.layers)]
    if facts.model_type in WINDOW_OFF_BY_DEFAULT and window(facts) is None:
        return [(Mixer.FULL,)] * facts.layers
    for key in BLOCK_NAME_KEYS:
        if names := facts.listed(key):
            return [_mixers(facts, str(name)) for name in names[: facts.layers]]
    return None


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
    period = facts.number(key) or facts.number(f"_{key}") or len(facts.listed(key)) or default
    if other is Mixer.SLIDING and window(facts) is None:
        other = Mixer.FULL
    shift = 0 if facts.model_type in FULL_FIRST else 1
    local = facts.model_type in LOCAL_AT_PERIOD and window(facts) is not None
    nth = Mixer.SLIDING if local else Mixer.FULL
    return [(other,) if (i + shift) % period else (nth,) for i in range(facts.layers)]


def _uniform(facts: Facts) -> list[tuple[Mixer, ...]]:
    size = window(facts)
    if size is None or facts.model_type in FULL_BY_DEFAULT:
        return [(Mixer.FULL,)] * facts.layers
    first = 0
    if facts.model_type in WINDOW_OFF_BY_DEFAULT:
        first = facts.number("max_window_layers")
    return [(Mixer.SLIDING,) if i >= first else (Mixer.FULL,) for i in range(facts.layers)]
