from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB, MIB
from moorage.placement.baseline import CacheInRam
from moorage.placement.baseline.estimate import memory_claim, ram_claim, ram_need
from tests.placement.baseline.builders import a_request


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"weight_bytes": 1000}, 1200 + 2 * GIB),
        ({"weight_bytes": 1001}, 1201 + 2 * GIB),
        ({"weight_bytes": 1000, "lora_bytes": 100}, 1320 + 2 * GIB),
        ({"weight_bytes": 1000, "categories": ()}, 1200 + 2 * GIB),
        ({"weight_bytes": 1000, "categories": ("embedding", "llm")}, 1200 + 2 * GIB),
        ({"weight_bytes": 1000, "categories": ("embedding",)}, 1200 + 512 * MIB),
        ({"weight_bytes": 1000, "categories": ("text_to_speech",)}, 3000 + 512 * MIB),
        ({"weight_bytes": 1000, "lora_bytes": 9, "categories": ("image",)}, 1000),
        ({"weight_bytes": 1000, "categories": ("image", "text_to_speech")}, 1000),
        ({"weight_bytes": None}, 2 * GIB),
        ({"weight_bytes": 1000, "claim_override": 7}, 7),
        ({"weight_bytes": 1000, "claim_override": 0}, 0),
        ({"weight_bytes": 1000, "claim_override": 7, "categories": ("image",)}, 7),
        (
            {"weight_bytes": 437955512 + 437997357, "categories": ("embedding",)},
            1588014354,
        ),
        ({"weight_bytes": 65524330000}, 80776679648),
    ],
    ids=str,
)
def test_a_model_needs_its_weights_and_a_fifth_and_an_overhead(
    changes: dict[str, Any], claim: int
) -> None:
    assert memory_claim(a_request(**{"claim_override": None, **changes})) == claim


@pytest.mark.parametrize(
    ("cache", "need"),
    [
        (None, 0),
        (CacheInRam(size=8 * GIB), 8 * GIB),
        (CacheInRam(size=8 * GIB, ratio=2.0), 8 * GIB),
        (CacheInRam(enabled=False, size=8 * GIB), 0),
        (CacheInRam(size=0), 0),
        (CacheInRam(size=-1), 0),
        (CacheInRam(ratio=2.0), 0),
    ],
    ids=str,
)
def test_only_a_cache_of_a_stated_size_asks_for_free_ram(
    cache: CacheInRam | None, need: int
) -> None:
    assert ram_need(cache) == need


@pytest.mark.parametrize(
    ("cache", "memory", "claim"),
    [
        (None, {0: 100}, 0),
        (CacheInRam(size=8 * GIB), {0: 100}, 8 * GIB),
        (CacheInRam(size=8 * GIB), {}, 8 * GIB),
        (CacheInRam(), {0: 100, 1: 50}, 180),
        (CacheInRam(ratio=2.0), {0: 23413653504}, 46827307008),
        (CacheInRam(ratio=0.5), {0: 3}, 1),
        (CacheInRam(size=0, ratio=2.0), {0: 100}, 200),
        (CacheInRam(ratio=None), {0: 100}, 0),
        (CacheInRam(ratio=0), {0: 100}, 0),
        (CacheInRam(ratio=-1.0), {0: 100}, 0),
        (CacheInRam(ratio=2.0), {}, 0),
        (CacheInRam(enabled=False, ratio=2.0), {0: 100}, 0),
    ],
    ids=str,
)
def test_ram_goes_by_size_or_by_what_is_taken_of_the_accelerators(
    cache: CacheInRam | None, memory: dict[int, int], claim: int
) -> None:
    assert ram_claim(cache, memory) == claim
