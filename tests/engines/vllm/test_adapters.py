from __future__ import annotations

from typing import Any

import pytest

from moorage.engines.vllm.adapters import Adapter, adapter_flags
from moorage.models.adapter_config import largest_rank
from moorage.models.memory.options import allowed_rank

TWO = (Adapter(name="a", path="/a", rank=8), Adapter(name="b", path="/b", rank=33))


@pytest.mark.parametrize(
    ("rank", "taken"), [(1, 8), (8, 8), (9, 16), (100, 128), (257, 320), (512, 512), (700, 700)]
)
def test_a_rank_is_rounded_up_to_one_that_vllm_takes(rank: int, taken: int) -> None:
    assert allowed_rank(rank) == taken


@pytest.mark.parametrize(
    ("config", "rank"),
    [
        ({"r": 16}, 16),
        ({"r": 8, "rank_pattern": {"q_proj": 105}}, 105),
        ({"rank_pattern": {"q_proj": 4}}, 4),
        ({"r": "16"}, None),
        ({"r": 8, "rank_pattern": ["q"]}, 8),
        ({}, None),
        (None, None),
    ],
)
def test_the_rank_of_an_adapter_is_its_largest(config: dict[str, Any] | None, rank: int) -> None:
    assert largest_rank(config) == rank


def test_the_largest_rank_of_all_adapters_counts() -> None:
    flags = {flag.tokens[0]: flag.tokens[1:] for flag in adapter_flags(TWO, "base", ())}
    assert flags["--max-loras"] == ("2",)
    assert flags["--max-lora-rank"] == ("64",)
    assert flags["--lora-modules"][1] == '{"name": "b", "path": "/b", "base_model_name": "base"}'


def test_without_a_known_rank_vllm_decides() -> None:
    flags = adapter_flags((Adapter(name="a", path="/a"),), "base", ())
    assert "--max-lora-rank" not in [flag.tokens[0] for flag in flags]


@pytest.mark.parametrize("word", ["--lora-modules=x=/x", "--lora_modules"])
def test_the_adapters_of_the_user_take_the_place_of_all(word: str) -> None:
    assert adapter_flags(TWO, "base", (word,)) == ()
