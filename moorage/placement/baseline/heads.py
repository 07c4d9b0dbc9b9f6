"""The head counts that the baseline reads out of a model's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Config = Mapping[str, Any]


def attention_heads(config: Config) -> int | None:
    """Heads of the language model: the first part of the configuration that states them counts."""
    parts = (
        config.get("llm_config"),
        config.get("text_config"),
        config,
        _part(config, "thinker_config").get("text_config"),
    )
    counts = (_count(part, "num_attention_heads") for part in parts if isinstance(part, Mapping))
    return next((count for count in counts if count and count > 0), None)


def vision_heads(config: Config) -> int | None:
    """Heads of the vision tower, with those that only pad it."""
    vision = _part(config, "vision_config")
    heads = _count(vision, "num_attention_heads")
    if heads is None:
        heads = _count(vision, "num_heads")
    if heads is None or heads <= 0:
        return None
    return heads + max(_count(vision, "num_dummy_heads") or 0, 0)


def _part(config: Config, name: str) -> Config:
    part = config.get(name)
    return part if isinstance(part, Mapping) else {}


def _count(part: Config, name: str) -> int | None:
    value = part.get(name)
    return value if type(value) is int else None
