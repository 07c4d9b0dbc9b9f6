"""What mixes the tokens in the layers of each model type, as data.

Source: the `layer_types` of the configuration classes of transformers 5, and the constructors in
`model_executor/models/`.
"""

from __future__ import annotations

from enum import StrEnum


class Mixer(StrEnum):
    """What mixes the tokens of a layer."""

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

PERIODS: dict[str, tuple[str, int, Mixer]] = {
    "gemma2": ("sliding_window_pattern", 2, Mixer.SLIDING),
    "gemma3_text": ("sliding_window_pattern", 6, Mixer.SLIDING),
    "gemma3n_text": ("sliding_window_pattern", 5, Mixer.SLIDING),
    "cohere2": ("sliding_window_pattern", 4, Mixer.SLIDING),
    "exaone4": ("sliding_window_pattern", 4, Mixer.SLIDING),
    "olmo3": ("sliding_window_pattern", 4, Mixer.SLIDING),
    "afmoe": ("global_attn_every_n_layers", 4, Mixer.SLIDING),
    "exaone_moe": ("sliding_window_pattern", 4, Mixer.SLIDING),
    "cohere2_moe": ("sliding_window_pattern", 4, Mixer.SLIDING),
    "vaultgemma": ("sliding_window_pattern", 2, Mixer.SLIDING),
    "gemma4_text": ("sliding_window_pattern", 6, Mixer.SLIDING),
    "smollm3": ("no_rope_layer_interval", 4, Mixer.FULL),
    "cwm": ("sliding_window_pattern", 4, Mixer.SLIDING),
    "granite_swa": ("sliding_window_pattern", 4, Mixer.SLIDING),
    "gpt_oss": ("sliding_window_pattern", 2, Mixer.SLIDING),
    "llama4_text": ("no_rope_layer_interval", 4, Mixer.CHUNKED),
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "olmo_hybrid"),
        ("full_attention_interval", 4, Mixer.STATE),
    ),
}
"""Model types where every n-th layer is full: the key of n, its default, what the others are."""

FULL_FIRST = ("cwm", "granite_swa")
"""Model types whose full layer comes first in each period, not last."""

LOCAL_AT_PERIOD = ("smollm3",)
"""Model types whose every n-th layer slides and whose others are full."""

FULL_BY_DEFAULT = ("laguna", "mellum")
"""Model types that have a window, but use it only where `layer_types` says so."""

TWICE = ("longcat_flash",)
"""Model types whose every layer has two full attentions."""

INDEXED = ("deepseek_v32", "glm_moe_dsa")
"""Model types whose every attention has a sparse indexer with a cache of its own."""

ALL_STATE = ("mamba", "mamba2", "falcon_mamba")
"""Model types without attention."""

PARALLEL = ("falcon_h1",)
"""Model types whose every layer has a state and full attention side by side."""

MAYBE_BIDIRECTIONAL = ("Gemma3TextModel",)
"""Architectures that are encoders where `use_bidirectional_attention` says so."""

WINDOW_OFF_BY_DEFAULT = ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3")
"""Model types that slide only where `use_sliding_window` says so."""

WINDOW_PLUS_ONE = ("cohere2", "modernbert")
"""Model types whose window counts the token itself besides (`commandr.py`, `modernbert.py`)."""

BLOCK_NAME_KEYS = (
    *("layer_types", "layers_block_type", "hybrid_override_pattern", "hybrid_layer_pattern"),
)

WHOLE_MODELS: dict[str, tuple[Mixer, ...]] = {
    **dict.fromkeys(PARALLEL, (Mixer.FULL, Mixer.STATE)),
    **dict.fromkeys(ALL_STATE, (Mixer.STATE,)),
    **dict.fromkeys(TWICE, (Mixer.FULL, Mixer.FULL)),
    **dict.fromkeys(INDEXED, (Mixer.INDEX, Mixer.FULL)),
}
"""Mixers of model types whose layers are all alike."""
