"""Tables on the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from moorage.cli import output

TABLES = {
    "plain": (("model", "state"), [("tiny", "running"), ("llama-3", "down")]),
    "without a head": (("", ""), [("a", "b")]),
    "cells of several lines": (
        ("on", "why"),
        [("gpu-1\ngpu-2", "it runs"), ("", "one\ntwo\nthree")],
    ),
    "wide characters, brackets": (("a", "b"), [("漢字", "[bold]x[/]"), ("ü", "trailing ")]),
    "without a head, too wide": (("", ""), [("what", "word " * 10)]),
    "too wide": (("a", "b"), [("word " * 10, "y" * 30)]),
    "only a head": (("model", "state"), []),
}


def printed(monkeypatch: pytest.MonkeyPatch, table: str) -> list[str]:
    console = Console(file=io.StringIO(), width=40)
    monkeypatch.setattr(output, "out", console)
    header, rows = TABLES[table]
    output.print_table(header, rows, styles=["red"][: len(rows)])
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_looks_as_rich_draws_it(monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    found = printed(monkeypatch, table)
    monkeypatch.setattr(output, "_unfolded", lambda _: None)
    assert found == printed(monkeypatch, table)


def test_a_table_without_a_head_is_folded_and_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    found = printed(monkeypatch, "without a head, too wide")
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
