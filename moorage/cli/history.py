"""`moorage history`: all releases of a model."""

from moorage.cli.options import AsJson, ModelName, open_ledger, row_json, unknown_model
from moorage.cli.output import dump, print_table, say
from moorage.reports.load_trend import load_trend


def history(name: ModelName, as_json: AsJson = False) -> None:
    """Show all releases of a model, newest first."""
    ledger = open_ledger()
    entries = ledger.overviews.history(name)
    if not entries:
        raise unknown_model(ledger, name)
    if as_json:
        return dump(
            [
                {
                    **row_json(one.row),
                    "rolled_back_to": one.rolled_back_to,
                    "requester": one.requester,
                    "requested_by": one.requested_by,
                }
                for one in entries
            ]
        )
    print_table(
        ("release", "state", "created", "revision", "requested by", "why"),
        [
            (
                row.id,
                row.state,
                f"{row.created_at:%Y-%m-%d %H:%M}",
                row.revision[:18],
                requested_by,
                row.cause or (f"runs {source} again" if source else ""),
            )
            for row, source, _, requested_by, _ in entries
        ],
    )
    if trend := load_trend(one.tpot for one in reversed(entries)):
        say(trend)
    return None
