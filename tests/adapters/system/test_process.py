from __future__ import annotations

import gc
import time

import pytest

from moorage.adapters.system.process import has_match, paused_collector


def test_nothing_is_collected_until_the_block_ends() -> None:
    with paused_collector():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_runs_again_after_a_failure() -> None:
    with pytest.raises(ValueError, match="wrong"), paused_collector():
        raise ValueError("wrong")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


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
