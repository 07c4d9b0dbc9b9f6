"""Facts of single model types that their configuration classes fill in (transformers 5).

Those that nearly all of them have are in `defaults.py`.
"""

from __future__ import annotations

from typing import Any

_GATED_DELTA: dict[str, Any] = {
    **{"head_dim": 256, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128},
    **{"linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128},
}
_LATENT: dict[str, Any] = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}

FILLED_IN: dict[str, dict[str, Any]] = {
    "gemma": {"head_dim": 256, "tie_word_embeddings": True},
    "gemma2": {"head_dim": 256, "sliding_window": 4096},
    "gemma3_text": {"head_dim": 256, "sliding_window": 4096, "num_key_value_heads": 4},
    "gemma3n_text": {"head_dim": 256, "sliding_window": 512, "num_key_value_heads": 2},
    "mixtral": {"num_key_value_heads": 8},
    "qwen3": {"head_dim": 128},
    "glm": {"head_dim": 128, "num_key_value_heads": 2},
    "glm4": {"head_dim": 128, "num_key_value_heads": 2},
    "gpt_oss": {"head_dim": 64, "num_key_value_heads": 8, "sliding_window": 128},
    "llama4_text": {"head_dim": 128, "num_key_value_heads": 8, "attention_chunk_size": 8192},
    "seed_oss": {"head_dim": 128},
    "ernie4_5": {"head_dim": 128},
    "minimax_m2": {"head_dim": 128},
    "nemotron_h": {"head_dim": 128, "conv_kernel": 4, "n_groups": 8, "ssm_state_size": 128},
    "cohere2": {"sliding_window": 4096},
    "olmo3": {"sliding_window": 4096},
    "exaone4": {"sliding_window": 4096},
    "modernbert": {"sliding_window": 64},
    "mamba": {"conv_kernel": 4, "state_size": 16, "expand": 2},
    "falcon_mamba": {"conv_kernel": 4, "state_size": 16, "expand": 2},
    "mamba2": {
        **{"conv_kernel": 4, "state_size": 128, "expand": 2, "n_groups": 8},
        **{"num_heads": 128, "head_dim": 64},
    },
    "jamba": {
        **{"mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 4},
        **{"attn_layer_period": 8, "attn_layer_offset": 4, "num_key_value_heads": 8},
    },
    "granitemoehybrid": {
        **{"mamba_expand": 2, "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_n_groups": 1},
        **{"mamba_n_heads": 128, "mamba_d_head": 64},
    },
    "falcon_h1": {
        **{"mamba_expand": 2, "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_n_groups": 1},
        **{"mamba_n_heads": 128, "mamba_d_head": 8, "mamba_d_ssm": 1024},
    },
    "zamba2": {
        **{"mamba_expand": 2, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_ngroups": 1},
        "n_mamba_heads": 8,
    },
    **dict.fromkeys(("qwen3_5_text", "qwen3_5_moe_text", "qwen3_next"), _GATED_DELTA),
    "olmo_hybrid": {"linear_conv_kernel_dim": 4},
    **{name: {**_LATENT, "index_head_dim": 128} for name in ("deepseek_v32", "glm_moe_dsa")},
    **dict.fromkeys(("glm4_moe_lite", "longcat_flash", "kimi_linear"), _LATENT),
    "step3p5": {"max_seq_len": 4096},
    "gemma4_text": {"global_head_dim": 512},
    "lfm2": {"conv_L_cache": 3, "num_key_value_heads": 8},
    "lfm2_moe": {"conv_L_cache": 3, "num_key_value_heads": 8},
    "gpt_bigcode": {"multi_query": True},
    "falcon": {"multi_query": True, "new_decoder_architecture": False},
    "whisper": {"max_source_positions": 1500, "max_target_positions": 448},
    "deepseek_v2": {"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "kv_lora_rank": 512},
    "deepseek_v3": {"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "kv_lora_rank": 512},
}
"""Values by model type."""
