from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.placement.baseline import CacheInRam
from moorage.placement.baseline.messages import messages
from moorage.placement.baseline.terms import terms
from tests.placement.baseline.builders import a_request


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {},
            [
                "The model requires approximately 18.00 GiB of accelerator memory.",
                "With --gpu-memory-utilization=0.9, all accelerators together need 20.00 GiB, and "
                "90% of each of them must be allocatable.",
            ],
        ),
        (
            {"parameters": ("--gpu-memory-utilization=1",)},
            [
                "The model requires approximately 18.00 GiB of accelerator memory.",
                "With --gpu-memory-utilization=1.0, all accelerators together need 18.00 GiB, and "
                "100% of each of them must be allocatable.",
            ],
        ),
        (
            {"categories": ("embedding",), "cache_in_ram": CacheInRam(size=8 * GIB)},
            [
                "The model requires approximately 18.00 GiB of accelerator memory and 8.00 GiB "
                "of RAM."
            ],
        ),
    ],
    ids=["share", "all", "no-share"],
)
def test_the_header_says_what_is_needed(changes: dict[str, Any], lines: list[str]) -> None:
    assert list(messages(terms(a_request(18 * GIB, **changes)), [])) == lines


@pytest.mark.parametrize(
    ("told", "tail"),
    [
        ([], ()),
        ([("one",)], ("one",)),
        ([("one",), ("two", "three")], ("two", "three")),
        ([("one",), (), ()], ("one",)),
    ],
)
def test_the_last_strategy_that_says_something_has_the_word(
    told: list[tuple[str, ...]], tail: tuple[str, ...]
) -> None:
    embedding = terms(a_request(1, categories=("embedding",)))
    assert messages(embedding, told)[1:] == tail
