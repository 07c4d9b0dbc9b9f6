"""Profiles of models for tests: what is derived from a configuration and a spec."""

from __future__ import annotations

from typing import Any

from moorage.models.profile import ModelProfile, derive_profile
from tests.builders import a_model, a_spec

Config = dict[str, Any]

LLAMA: Config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "max_position_embeddings": 8192,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}


def derived(config: Config, *, wish: Config | None = None, **model: Any) -> ModelProfile:
    """The profile of a model with this configuration, and of a spec with these fields."""
    return derive_profile(a_spec(**(wish or {})), a_model(config, **model))
