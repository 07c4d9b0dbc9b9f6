from __future__ import annotations

import gc

import pytest

from moorage.adapters.system.process import paused_collector


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
