"""How far rope scaling stretches the context that a configuration names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from moorage.images.versions import version_key
from moorage.spec import EngineName, ModelSpec, Policy

POSITIONS = "max_position_embeddings"
HELD_SINCE = "0.30.0"
"""First version of vLLM whose `yarn` multiplies nothing (its pull request 56446)."""


class RopeRule(StrEnum):
    """Whether the configured length holds what `yarn` adds."""

    HELD = "held"
    """It does: vLLM from 0.30.0, as in transformers."""

    MULTIPLIED = "multiplied"
    """The length before scaling is multiplied: vLLM before 0.30.0, and GPUStack."""


HELD_BY = {
    RopeRule.HELD: frozenset(
        {
            *("su", "longrope", "llama3", "yarn"),
            *("telechat3-yarn", "deepseek_yarn", "deepseek_llama_scaling"),
        }
    ),
    RopeRule.MULTIPLIED: frozenset({"su", "longrope", "llama3", "proportional"}),
}
"""Rope types whose factor is in the configured length already, or is no stretch of it.

Source: `_get_and_verify_max_len` of vLLM 0.20, 0.29, 0.30 and 0.32; GPUStack knows `proportional`.
"""


def rope_rule(spec: ModelSpec) -> RopeRule:
    """The rule of what a spec starts.

    An unknown version gets the rule that gives the shorter context: every version takes that.
    """
    version = spec.engine.version
    if spec.placement.policy == Policy.BASELINE or spec.engine.name == EngineName.CUSTOM:
        return RopeRule.MULTIPLIED
    if spec.engine.name == EngineName.TRANSFORMERS or not version:
        return RopeRule.HELD
    older = version_key(version) < version_key(HELD_SINCE)
    return RopeRule.MULTIPLIED if older else RopeRule.HELD


def stretched(length: int, text: Mapping[str, Any], rule: RopeRule) -> int:
    """A configured length with its scaling, in tokens.

    Args:
        length: As the configuration names it.
        text: The part of the configuration about the language model.
        rule: Whose rule.
    """
    for rope in rope_settings(text):
        kind, factor = rope_type(rope), _finite(rope.get("factor"))
        if kind in HELD_BY[rule] or factor is None:
            continue
        if kind == "yarn":
            length = _original(rope, text) or length
        return int(length * factor)
    return length


def rope_settings(text: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The settings of each rope: one, or one for each kind of layer."""
    rope = text.get("rope_scaling") or text.get("rope_parameters")
    if not isinstance(rope, Mapping):
        return []
    nested = [part for part in rope.values() if isinstance(part, Mapping)]
    return nested or [rope]


def rope_type(rope: Mapping[str, Any]) -> str:
    """The type of a rope, under its old name too."""
    return str(rope.get("rope_type") or rope.get("type") or "default")


def _original(rope: Mapping[str, Any], text: Mapping[str, Any]) -> int | None:
    """The length before scaling; transformers takes the configured one for it."""
    for value in (rope.get("original_max_position_embeddings"), text.get(POSITIONS)):
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _finite(factor: object) -> float | None:
    return factor if isinstance(factor, int | float) and math.isfinite(factor) else None
