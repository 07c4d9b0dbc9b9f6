"""`moorage history`: all releases of a model."""

from moorage.cli.options import AsJson, ModelName, open_ledger, row_json, unknown_model
from moorage.cli.output import dump, print_table, say
from moorage.cli.unfinished import causes
from moorage.reports.load_trend import load_trend


def history(name: ModelName, as_json: AsJson = False) -> None:
    """Show all releases of a model, newest first."""
    ledger = open_ledger()
    entries = ledger.overviews.history(name)
    if not entries:
        raise unknown_model(ledger, name)
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
    return None
