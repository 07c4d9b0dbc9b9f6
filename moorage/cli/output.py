"""The two forms of output: tables and text for people, JSON for programs. Failures have both."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from moorage.adapters.files.specs import InvalidFile
from moorage.common.failures import CAUSES, Failure
from moorage.placement.propose import NoFit
from moorage.policy.request import PolicyRefused

WIDE = 160
"""Columns where the output is no terminal, such as a file or a log."""
LOG_LINES_SHOWN = 25

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


def failure_json(failure: Failure) -> dict[str, Any]:
    """A failure as data."""
    content: dict[str, Any] = {
        "cause": failure.cause,
        "summary": failure.facts.summary,
        "detail": failure.detail,
        "suggestion": failure.suggestion,
        "exit_code": int(failure.facts.exit_code),
        "evidence": failure.evidence,
        "log_tail": failure.log_tail,
    }
    if isinstance(failure, InvalidFile):
        content["problems"] = [problem.model_dump() for problem in failure.problems]
    if isinstance(failure, PolicyRefused):
        content["violations"] = [one.model_dump() for one in failure.violations]
    if isinstance(failure, NoFit):
        content["placement"] = failure.placement.model_dump(mode="json")
    return {"error": content}


def show_failure(failure: Failure) -> None:
    """A failure for a person: log tail, cause, detail, what to do."""
    if failure.log_tail:
        tail = failure.log_tail.splitlines()[-LOG_LINES_SHOWN:]
        err.print("[dim]last lines of the engine's log:[/dim]")
        shown = "\n".join(f"  {line}" for line in tail)
        err.print(shown, style="dim", markup=False, soft_wrap=True, highlight=False)
    summary = escape(CAUSES[failure.cause].summary)
    err.print(f"[bold red]{summary}[/] ({failure.cause})", soft_wrap=True, highlight=False)
    err.print(failure.detail, markup=False, soft_wrap=True, highlight=False)
    err.print(f"[bold]What to do:[/] {escape(failure.suggestion)}", soft_wrap=True, highlight=False)
