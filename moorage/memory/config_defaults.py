"""Defaults of the configuration classes of transformers 5 for keys missing from config.json.

Values that follow from other values are left out.
"""

from typing import Any

_MAMBA = {"conv_kernel": 4, "state_size": 16, "expand": 2}
_HYBRID = {
    **{"mamba_expand": 2, "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_n_groups": 1},
    **{"mamba_n_heads": 128, "mamba_chunk_size": 256},
}
_GATED_DELTA = {
    **{"linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16},
    **{"linear_num_value_heads": 32, "linear_value_head_dim": 128},
}
_LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}

OTHER_VALUES: dict[str, dict[str, Any]] = {
    "gemma": {"tie_word_embeddings": True},
    "llama4_text": {"attention_chunk_size": 8192},
    "nemotron_h": {"conv_kernel": 4, "n_groups": 8, "ssm_state_size": 128, "chunk_size": 128},
    **dict.fromkeys(("mamba", "falcon_mamba"), _MAMBA),
    "mamba2": {
        **{**_MAMBA, "state_size": 128, "n_groups": 8, "num_heads": 128, "head_dim": 64},
        "chunk_size": 256,
    },
    "jamba": {
        **{"mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 4},
        **{"attn_layer_period": 8, "attn_layer_offset": 4},
    },
    "granitemoehybrid": {**_HYBRID, "mamba_d_head": 64},
    "falcon_h1": {**_HYBRID, "mamba_d_head": 8, "mamba_d_ssm": 1024},
    "zamba2": {
        **{"mamba_expand": 2, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_ngroups": 1},
        **{"n_mamba_heads": 8, "chunk_size": 256},
    },
    **dict.fromkeys(("qwen3_5_text", "qwen3_5_moe_text", "qwen3_next"), _GATED_DELTA),
    "olmo_hybrid": {"linear_conv_kernel_dim": 4},
    **{name: {**_LATENT, "index_head_dim": 128} for name in ("deepseek_v32", "glm_moe_dsa")},
    **dict.fromkeys(("glm4_moe_lite", "longcat_flash", "kimi_linear"), _LATENT),
    **{name: {**_LATENT, "qk_nope_head_dim": 128} for name in ("deepseek_v2", "deepseek_v3")},
    "step3p5": {"max_seq_len": 4096},
    "gemma4_text": {"global_head_dim": 512},
    "lfm2": {"conv_L_cache": 3},
    "lfm2_moe": {"conv_L_cache": 3},
    "gpt_bigcode": {"multi_query": True},
    "falcon": {"multi_query": True, "new_decoder_architecture": False},
    "whisper": {"max_source_positions": 1500, "max_target_positions": 448},
}
"""Values of keys outside `KEYS`, and of keys that `VALUES` leaves open, by model type."""

KEYS = (
    *("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads"),
    *("head_dim", "sliding_window", "max_position_embeddings"),
)

VALUES: dict[str, tuple[int | None, ...]] = {
    "afmoe": (32, 2048, 16, None, 128, 1024, 16384),
    "apertus": (32, 4096, 32, None, None, None, 65536),
    "arcee": (32, 2560, 32, None, None, None, 4096),
    **dict.fromkeys(("bert", "roberta", "xlm-roberta"), (12, 768, 12, None, None, None, 512)),
    "bloom": (2, 64, 8, None, None, None, None),
    "cohere": (40, 8192, 64, None, None, None, 8192),
    "cohere2": (40, 8192, 64, None, None, 4096, 8192),
    "cohere2_moe": (40, 8192, 64, None, 128, 4096, 8192),
    "cwm": (64, 6144, 48, 8, 128, 8192, 131072),
    "dbrx": (24, 2048, 16, 1, None, None, None),
    **dict.fromkeys(
        (
            *("deepseek_v2", "granite", "granitemoe", "granitemoehybrid", "granitemoeshared"),
            *("hunyuan_v1_dense", "hunyuan_v1_moe", "llama", "olmo", "olmo2"),
        ),
        (32, 4096, 32, None, None, None, 2048),
    ),
    "deepseek_v3": (61, 7168, 128, 128, None, None, 4096),
    "deepseek_v32": (61, 7168, 128, 128, None, None, 163840),
    "diffllama": (16, 2048, 32, None, None, None, 2048),
    "ernie4_5": (18, 1024, 16, 2, 128, None, 131072),
    "ernie4_5_moe": (28, 2560, 20, 4, None, None, 131072),
    **dict.fromkeys(("exaone4", "exaone_moe"), (32, 4096, 32, 32, None, 4096, 2048)),
    "falcon": (32, 4544, 71, None, None, None, 2048),
    "falcon_h1": (32, 4096, 32, 8, None, None, 8192),
    **dict.fromkeys(("falcon_mamba", "mamba"), (32, 768, None, None, None, None, None)),
    "flex_olmo": (32, 4096, 32, None, None, None, 4096),
    "gemma": (28, 3072, 16, 16, 256, None, 8192),
    **dict.fromkeys(("gemma2", "vaultgemma"), (26, 2304, 8, 4, 256, 4096, 8192)),
    "gemma3_text": (26, 2304, 8, 4, 256, 4096, 131072),
    "gemma3n_text": (35, 2048, 8, 2, 256, 512, 32768),
    "gemma4_text": (30, 2304, 8, 4, 256, 512, 131072),
    **dict.fromkeys(("glm", "glm4"), (40, 4096, 32, 2, 128, None, 131072)),
    "glm4_moe": (46, 4096, 96, 8, None, None, 131072),
    "glm4_moe_lite": (47, 2048, 20, 20, None, None, 202752),
    "glm_moe_dsa": (78, 6144, 64, 64, None, None, 202752),
    **dict.fromkeys(("gpt2", "gpt_bigcode"), (12, 768, 12, None, None, None, None)),
    "gpt_neox": (44, 6144, 64, None, None, None, 2048),
    "gpt_oss": (36, 2880, 64, 8, 64, 128, 131072),
    "gptj": (28, 4096, 16, None, None, None, None),
    "granite_swa": (24, 2560, 20, 4, None, 128, 8192),
    "helium": (24, 2560, 20, 20, 128, None, 4096),
    "hy_v3": (80, 4096, 64, 8, 128, None, 131072),
    "jais2": (32, 3328, 26, None, None, None, 8192),
    "jamba": (32, 4096, 32, 8, None, None, 262144),
    "jetmoe": (12, 2048, 32, 16, 128, None, 4096),
    "kimi_linear": (27, 2304, 32, 32, None, None, 1048576),
    "laguna": (40, 2048, 48, 8, 128, 512, 131072),
    "lfm2": (32, 2560, 32, 8, None, None, 128000),
    "lfm2_moe": (32, 2048, 32, 8, None, None, 128000),
    "llama4_text": (48, 5120, 40, 8, 128, None, 131072),
    "longcat_flash": (56, 6144, 64, None, None, None, 131072),
    "mamba2": (64, 4096, None, None, None, None, None),
    "mellum": (28, 2304, 32, 4, 128, 1024, 131072),
    "mimo_v2_flash": (48, 4096, 64, 4, 192, 128, 131072),
    "minimax_m2": (62, 3072, 48, 8, 128, None, 196608),
    **dict.fromkeys(("ministral", "mistral"), (32, 4096, 32, 8, None, 4096, 131072)),
    "ministral3": (34, 4096, 32, 8, 128, None, 262144),
    "mistral4": (36, 4096, 32, 32, None, None, 1048576),
    **dict.fromkeys(("mixtral", "phimoe"), (32, 4096, 32, 8, None, None, 131072)),
    "modernbert": (22, 768, 12, None, None, 64, 8192),
    "nemotron": (32, 6144, 48, None, None, None, 4096),
    "nemotron_h": (4, 4096, 32, 8, 128, None, 4096),
    **dict.fromkeys(("nomic_bert", "opt"), (12, 768, 12, None, None, None, 2048)),
    "olmo3": (32, 4096, 32, None, None, 4096, 2048),
    "olmo_hybrid": (32, 3840, 30, None, None, None, 65536),
    "olmoe": (16, 2048, 16, None, None, None, 4096),
    "phi": (24, 2048, 32, None, None, None, 2048),
    "phi3": (32, 3072, 32, None, None, None, 4096),
    "qwen2": (32, 4096, 32, 32, None, None, 32768),
    **dict.fromkeys(("qwen2_5_vl_text", "qwen2_vl_text"), (80, 8192, 64, 8, None, None, 32768)),
    "qwen2_moe": (24, 2048, 16, 16, None, None, 32768),
    "qwen3": (32, 4096, 32, 32, 128, None, 32768),
    "qwen3_5_moe_text": (40, 2048, 16, 2, 256, None, 32768),
    "qwen3_5_text": (32, 4096, 16, 4, 256, None, 32768),
    "qwen3_moe": (24, 2048, 32, 4, None, None, 32768),
    "qwen3_next": (48, 2048, 16, 2, 256, None, 32768),
    "qwen3_vl_moe_text": (24, 2048, 16, 16, None, None, 128000),
    "qwen3_vl_text": (32, 4096, 32, 32, 128, None, 128000),
    "seed_oss": (64, 4096, 80, 8, 128, None, 524288),
    "smollm3": (36, 2048, 16, 4, None, None, 32768),
    "solar_open": (48, 4096, 64, 8, 128, None, 131072),
    "stablelm": (32, 2560, 32, 32, None, None, 4096),
    "starcoder2": (30, 3072, 24, 2, None, None, 4096),
    "whisper": (4, 384, 6, None, None, None, None),
    "zamba2": (54, 2560, 32, None, None, None, 4096),
}
"""Values of `KEYS` by model type; None = no such value, or it follows from others."""


def class_default(model_type: str, key: str, *aliases: str) -> Any:
    """The default of a key in the configuration class of a model type; None = no default."""
    others = OTHER_VALUES.get(model_type, {})
    for name in (key, *aliases):
        if name in others:
            return others[name]
    if key in KEYS and model_type in VALUES:
        return VALUES[model_type][KEYS.index(key)]
    return None
