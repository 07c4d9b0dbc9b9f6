from __future__ import annotations

import time

import pytest

from moorage.adapters.system.pattern_search import has_match


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("", "", True),
        (r"\b4\b", "It is 4.", True),
        (r"\b4\b", "It is 42.", False),
        ("(?i)PARIS", "paris, été", True),
        ("^$", "", True),
    ],
)
def test_a_pattern_is_looked_for_anywhere_in_the_text(pattern: str, text: str, found: bool) -> None:
    assert has_match(pattern, text) is found


def test_a_pattern_that_backtracks_for_ever_is_given_up() -> None:
    began = time.monotonic()
    assert has_match("(a+)+$", "a" * 60 + "b", seconds=1.0) is None
    assert time.monotonic() - began < 20
