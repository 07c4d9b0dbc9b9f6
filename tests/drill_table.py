"""The table of the drills at the end of a test run: a row for each point of a kill.

Rows are properties of test reports, so that they arrive from any process that ran the test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

PROPERTY = "drill"
"""Name of the property with a row: a mapping from columns to texts."""

COLUMNS = (
    "killed",
    "at",
    "the command ended",
    "reconcile did",
    "left over",
    "old one answered",
    "repeated",
)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the rows of all drills that ran, ordered by the killed process."""
    reports = [report for kind in ("passed", "failed") for report in _of(terminalreporter, kind)]
    rows = [row for report in reports for row in _rows(report)]
    if rows:
        rows.sort(key=lambda row: row["killed"])
        terminalreporter.section("drills: one reconcile after each kill")
        terminalreporter.write(table(rows))
        terminalreporter.write(f"\n{len(rows)} kills\n")


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """The rows as a text table, with columns as wide as their cells."""
    lines = [COLUMNS, *(tuple(row[column] for column in COLUMNS) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _of(reporter: pytest.TerminalReporter, kind: str) -> list[pytest.TestReport]:
    seen = reporter.stats.get(kind, [])
    return [one for one in seen if isinstance(one, pytest.TestReport) and one.when == "call"]


def _rows(report: pytest.TestReport) -> list[dict[str, str]]:
    return [
        value
        for name, value in report.user_properties
        if name == PROPERTY and isinstance(value, dict)
    ]
