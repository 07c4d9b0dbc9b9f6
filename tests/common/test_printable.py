from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \u00e4\u20ac\U0001f40b\n\tnext", "plain \u00e4\u20ac\U0001f40b\n\tnext"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("a\rb\x00\x7f\x9b", r"a\rb\x00\x7f\x9b"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\ud800", r"\ud800"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_colours_may_stay_and_nothing_else() -> None:
    text = "\x1b[1;31mred\x1b[0m \x1b[2J"
    assert printable(text, coloured=True) == "\x1b[1;31mred\x1b[0m \\x1b[2J"


@given(st.text())
def test_done_again_it_changes_nothing(text: str) -> None:
    assert printable(printable(text)) == printable(text)
    printable(text).encode()
