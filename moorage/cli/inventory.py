"""What there is to deploy with: engines, and this machine's health."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.cli.fleet import print_check
from moorage.cli.output import dump, print_table
from moorage.engines.base import Engine
from moorage.images.catalogue import CATALOGUE
from moorage.inventory.check import Check


def engines(known: Sequence[Engine], *, as_json: bool) -> None:
    """One line an engine."""
    rows: list[dict[str, Any]] = [
        {
            "engine": engine.name,
            "version": engine.default_version,
            "modes": sorted(engine.modes),
            "accelerators": [*sorted(engine.accelerator_types), *["cpu"] * engine.runs_on_cpu],
            "images": {
                row.accelerator_type: row.reference(engine.default_version)
                # The first row of a type is its newest runtime, so it comes last here and stays.
                for row in reversed(CATALOGUE)
                if row.engine == engine.name and row.has(engine.default_version)
            },
            "program": engine.program,
        }
        for engine in known
    ]
    if as_json:
        return dump(rows)
    return print_table(
        ("engine", "version", "serves", "runs on", "images", "program"),
        [
            (
                str(row["engine"]),
                str(row["version"]) or "yours",
                ", ".join(row["modes"]),
                ", ".join(row["accelerators"]),
                "\n".join(row["images"].values()) or "none: give `engine.image`",
                f"{row['program']} serve" if row["program"] else "none: give `engine.command`",
            )
            for row in rows
        ],
    )


def doctor(checks: Sequence[Check], *, as_json: bool) -> None:
    """One line a check."""
    if as_json:
        return dump([check.model_dump(mode="json") for check in checks])
    for check in checks:
        print_check(check)
    return None
