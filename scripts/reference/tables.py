"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The lines of a table; a `|` in a cell is escaped."""
    lines = [_row(header), _row(["---"] * len(header)), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"
