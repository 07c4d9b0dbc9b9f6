"""The two forms of output: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

WIDE = 160
"""Columns where the output is no terminal, such as a file or a log."""

out = Console(width=None if sys.stdout.isatty() else WIDE)
err = Console(stderr=True, width=None if sys.stderr.isatty() else WIDE)


def dump(content: Any) -> None:
    """Print JSON."""
    json.dump(content, sys.stdout, indent=2, default=str)
    sys.stdout.write("\n")


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "") -> None:
    """Print a table; cells that are too long are folded, never cut."""
    if not rows and empty:
        out.print(empty)
        return
    table = Table(box=None, header_style="bold", show_header=any(header))
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    out.print(table)
