"""`moorage usage`: requests and tokens of the gateway's callers."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from moorage.cli.options import AsJson, open_ledger
from moorage.cli.output import dump, print_table


def usage(
    days: Annotated[int, typer.Option(min=1, max=3660, help="Days up to today, in UTC.")] = 7,
    key: Annotated[str, typer.Option(help="Only this API key.")] = "",
    model: Annotated[str, typer.Option(help="Only this model or adapter.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show requests and tokens of the gateway's callers by day, model and key."""
    first = datetime.now(UTC) - timedelta(days=days - 1)
    found = [
        one
        for one in open_ledger().usage.since(f"{first:%Y-%m-%d}")
        if key in ("", one.caller) and model in ("", one.model)
    ]
    if as_json:
        return dump(found)
    header = ("day", "model", "key", "requests", "failed", "prompt tokens", "completion tokens")
    rows = [
        (
            one.day,
            one.model,
            one.caller or "none",
            f"{one.requests:,}",
            f"{one.failed:,}",
            f"{one.prompt_tokens:,}",
            f"{one.completion_tokens:,}",
        )
        for one in found
    ]
    return print_table(header, rows, empty="No request went through a gateway in this time.")
