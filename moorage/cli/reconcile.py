"""`moorage reconcile`: make ledger and hosts one again, and say what was done and why."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, Any

import typer

from moorage.cli.flows import Outcome as Ended
from moorage.cli.flows import exit_on_failure, run_flow
from moorage.cli.options import AsJson, FleetFile, fleet_of
from moorage.cli.output import dump, out, print_table
from moorage.operations.reconcile.actions import Outcome
from moorage.reports.reconcile_report import COLUMNS, rows

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def reconcile(fleet: FleetFile = None, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Put right what died, was left behind, or is out of sight; say what was done and why."""

    def action() -> Ended[tuple[Outcome, ...]]:
        hosts = fleet_of(fleet)

        def start() -> Awaitable[Any]:
            from flows.reconcile_fleet import reconcile_fleet  # noqa: PLC0415  (see run_flow)

            return reconcile_fleet(hosts, dry_run, return_state=True)

        return run_flow(start, as_json=as_json)

    _show(exit_on_failure(action, as_json=as_json), as_json=as_json)


def _show(ended: Ended[tuple[Outcome, ...]], *, as_json: bool) -> None:
    if as_json:
        content = {"outcome": ended.name.lower(), "message": ended.message}
        return dump({**content, "actions": [_data(one) for one in ended.result]})
    out.print(ended.message, highlight=False, soft_wrap=True)
    if ended.result:
        print_table(COLUMNS, rows(ended.result))
    return None


def _data(one: Outcome) -> dict[str, Any]:
    action = one.action
    return {
        "deed": action.deed,
        "about": action.about,
        "model": action.model,
        "release": action.release,
        "host": action.host,
        "reason": action.reason,
        "done": one.done,
        "outcome": one.summary,
    }
