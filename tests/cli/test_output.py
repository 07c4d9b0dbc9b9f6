"""Tables on the terminal."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from moorage.cli import output

TABLES: dict[str, tuple[tuple[str, ...], list[tuple[str, ...]]]] = {
    "plain": (("model", "state"), [("tiny", "running"), ("llama-3", "down")]),
    "without a head": (("", ""), [("a", "b")]),
    "cells of several lines": (
        ("on", "why"),
        [("gpu-1\ngpu-2", "it runs"), ("", "one\ntwo\nthree")],
    ),
    "wide characters, brackets": (("a", "b"), [("漢字", "[bold]x[/]"), ("ü", "trailing ")]),
    "without a head, too wide": (("", ""), [("what", "word " * 10)]),
    "too wide": (("a", "b"), [("word " * 10, "y" * 30)]),
    "too wide in one row": (("a", "b", "c"), [("x", "y", "z"), ("x", "word " * 12, "z")]),
    "only a head": (("model", "state"), []),
}


def printed(monkeypatch: pytest.MonkeyPatch, draw: Callable[[Console], None]) -> list[str]:
    console = Console(file=io.StringIO(), width=40)
    monkeypatch.setattr(output, "out", console)
    draw(console)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def drawn_by_rich(console: Console, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=None, show_header=any(header))
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_looks_as_rich_draws_it(monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    header, rows = TABLES[table]
    styles = ["red"][: len(rows)]
    found = printed(monkeypatch, lambda _: output.print_table(header, rows, styles=styles))
    assert found == printed(monkeypatch, lambda console: drawn_by_rich(console, header, rows))


@given(
    rows=st.lists(st.tuples(*[st.text("ab cü漢\n", max_size=60)] * 3), min_size=1, max_size=4),
    width=st.integers(20, 90),
)
def test_a_table_fits_and_loses_nothing(rows: list[tuple[str, str, str]], width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "out", console)
        output.print_table(("a", "b", "c"), rows, whole=("b",))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert max(map(cell_len, shown.split("\n"))) <= width
    given_characters = "".join("".join(row) for row in rows)
    assert sorted("".join(shown.split())) == sorted("abc" + "".join(given_characters.split()))


def test_a_table_without_a_head_is_folded_and_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLES["without a head, too wide"]
    found = printed(monkeypatch, lambda _: output.print_table(*table))
    assert " ".join(found).split() == ["what", *["word"] * 10]


def test_a_column_that_stays_whole_is_not_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(output, "out", Console(file=shown, width=40))
    rows = [("1 min 00 s", "word " * 10, "word " * 10)]
    output.print_table(("for", "on", "why"), rows, whole=("for",))
    assert " 1 min 00 s " in shown.getvalue()


def test_markdown_is_shown_as_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_markdown("# Plan\n\n| flag | why |\n| --- | --- |\n| --port | claimed |\n")
    shown = capsys.readouterr().out
    assert "claimed" in shown
    assert "|" not in shown.replace("│", "")
    assert "#" not in shown
