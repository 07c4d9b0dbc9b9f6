"""A stream that falls silent is waited for as long as the other side is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from moorage.adapters.docker.streams import follow


def test_items_come_in_order_and_end() -> None:
    assert list(follow(lambda: iter([1, 2, 3]), lambda: None)) == [1, 2, 3]


def test_what_the_stream_raises_is_raised() -> None:
    def stream() -> Iterator[int]:
        yield 1
        raise ValueError("cut")

    found = follow(stream, lambda: None)
    assert next(found) == 1
    with pytest.raises(ValueError, match="cut"):
        next(found)


def test_silence_is_borne_as_long_as_the_other_side_answers() -> None:
    asked, go_on = [], threading.Event()

    def stream() -> Iterator[int]:
        assert go_on.wait(60)
        yield 1

    def ask() -> None:
        asked.append(1)
        if len(asked) == 2:
            raise OSError("busy")
        if len(asked) == 5:
            go_on.set()

    assert list(follow(stream, ask, silence=0.01, misses=2)) == [1]
    assert len(asked) >= 5


def test_a_side_that_is_gone_ends_the_wait() -> None:
    never, asked = threading.Event(), []

    def stream() -> Iterator[int]:
        never.wait(30)
        yield 1

    def ask() -> None:
        asked.append(1)
        raise OSError("no route")

    with pytest.raises(OSError, match="no route"):
        list(follow(stream, ask, silence=0.01, misses=3))
    assert len(asked) == 3
    never.set()
