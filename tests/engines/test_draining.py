from __future__ import annotations

import pytest

from moorage.engines.draining import Drained


@pytest.mark.parametrize(
    ("drained", "summary"),
    [
        (Drained(), ""),
        (Drained(seconds=30, waited=True), ""),
        (Drained(seconds=0.3, left=0), "no request was in flight"),
        (Drained(seconds=12.4, left=0, waited=True), "its last request ended after 12.4 s"),
        (Drained(seconds=30, left=1, waited=True), "1 request still in flight after 30.0 s"),
        (Drained(seconds=90, left=4, waited=True), "4 requests still in flight after 1 min 30 s"),
    ],
)
def test_how_it_ended_is_one_line(drained: Drained, summary: str) -> None:
    assert drained.summary == summary
