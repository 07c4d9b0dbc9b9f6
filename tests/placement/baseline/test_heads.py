from __future__ import annotations

from typing import Any

import pytest

from moorage.placement.baseline.heads import attention_heads, vision_heads

HEADS = "num_attention_heads"


@pytest.mark.parametrize(
    ("config", "heads"),
    [
        ({HEADS: 16}, 16),
        ({HEADS: 1}, 1),
        ({HEADS: 16, "text_config": {HEADS: 8}}, 8),
        ({HEADS: 16, "text_config": {HEADS: 8}, "llm_config": {HEADS: 4}}, 4),
        ({"thinker_config": {"text_config": {HEADS: 28}}}, 28),
        ({HEADS: 16, "thinker_config": {"text_config": {HEADS: 28}}}, 16),
        ({HEADS: 16, "text_config": {HEADS: 0}}, 16),
        ({HEADS: "16"}, None),
        ({HEADS: 0}, None),
        ({"text_config": "x", "thinker_config": None}, None),
        ({}, None),
    ],
    ids=str,
)
def test_the_first_part_that_states_its_heads_counts(
    config: dict[str, Any], heads: int | None
) -> None:
    assert attention_heads(config) == heads


@pytest.mark.parametrize(
    ("vision", "heads"),
    [
        ({HEADS: 16}, 16),
        ({"num_heads": 16}, 16),
        ({"num_heads": 1}, 1),
        ({HEADS: 12, "num_heads": 16}, 12),
        ({HEADS: 25, "num_dummy_heads": 7}, 32),
        ({HEADS: 25, "num_dummy_heads": -7}, 25),
        ({HEADS: 25, "num_dummy_heads": "7"}, 25),
        ({HEADS: "16", "num_heads": 8}, 8),
        ({HEADS: 0, "num_heads": 8}, None),
        ({HEADS: -4}, None),
        ({}, None),
        (None, None),
    ],
    ids=str,
)
def test_heads_of_the_vision_tower_include_those_that_pad_it(
    vision: dict[str, Any] | None, heads: int | None
) -> None:
    assert vision_heads({HEADS: 3, "vision_config": vision}) == heads
