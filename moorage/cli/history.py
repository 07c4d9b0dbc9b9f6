"""`moorage history`: all releases of a model."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from moorage.cli.options import AsJson, ModelName, open_ledger, row_json, unknown_model
from moorage.cli.output import dump, err, print_table, say
from moorage.cli.unfinished import causes
from moorage.releases.overview import HistoryEntry
from moorage.reports.load_trend import load_trend


def history(
    name: ModelName,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1_000_000, help="Most releases to show.")
    ] = 100,
    as_json: AsJson = False,
) -> None:
    """Show the releases of a model, newest first."""
    ledger = open_ledger()
    found = ledger.overviews.history(name, limit + 1)
    if not found:
        raise unknown_model(ledger, name)
    entries = found[:limit]
    if entries != found:
        err.print(f"there are older releases than these {limit}: `--limit` sets how many are shown")
    why = causes(ledger, [one.row for one in entries])
    if as_json:
        return dump(
            [
                {
                    **row_json(one.row),
                    "cause": why[one.row.id],
                    "rolled_back_to": one.rolled_back_to,
                    "requester": one.requester,
                    "requested_by": one.requested_by,
                }
                for one in entries
            ]
        )
    return _print(entries, why)


def _print(entries: Sequence[HistoryEntry], why: Mapping[str, str]) -> None:
    print_table(
        ("release", "state", "created", "revision", "requested by", "why"),
        [
            (
                one.row.id,
                one.row.state,
                f"{one.row.created_at:%Y-%m-%d %H:%M}",
                one.row.revision[:18],
                one.requested_by,
                why[one.row.id] or (one.rolled_back_to and f"runs {one.rolled_back_to} again"),
            )
            for one in entries
        ],
    )
    if trend := load_trend(one.tpot for one in reversed(entries)):
        say(trend)
