"""`moorage diff` and `rollback`: compare two releases, and redeploy an earlier one."""

from typing import Annotated

import typer

from moorage.cli.dry_run import call_dry_run
from moorage.cli.flows import call_flow
from moorage.cli.options import (
    AsJson,
    DryRun,
    FleetFile,
    ModelName,
    fleet_of,
    open_ledger,
    record_of,
    require_model,
    unknown_model,
)
from moorage.cli.output import dump, say, show_document
from moorage.cli.records import show_deployment, show_record
from moorage.operations.flow_result import FlowResult
from moorage.operations.history.comparison import compare
from moorage.operations.history.rollback import last_two
from moorage.releases.release import Release
from moorage.reports.operations_report import comparison_document


def diff(
    before: Annotated[
        str, typer.Argument(metavar="A", help="A release such as NAME.v3; or NAME alone.")
    ],
    after: Annotated[
        str | None,
        typer.Argument(metavar="B", help="Another release. Default: compare the last two of NAME."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two releases, from the spec to the measurements."""
    ledger = open_ledger()
    if after is None:
        if not (found := ledger.releases.of_model(before)):
            raise unknown_model(ledger, before)
        comparison = compare(*last_two(before, found))
    else:
        comparison = compare(record_of(ledger, before), record_of(ledger, after))
    if as_json:
        return dump(comparison)
    return show_document(comparison_document(comparison))


def rollback(
    name: ModelName,
    to: Annotated[
        str, typer.Option(help="Target release. Default: the previous one that ran.")
    ] = "",
    dry_run: DryRun = False,
    fleet: FleetFile = None,
    as_json: AsJson = False,
) -> None:
    """Deploy an earlier release again, with the same revision, image and plan."""
    require_model(name)
    if dry_run:
        planned = call_dry_run("plan_rollback", name, to, fleet_of(fleet), as_json=as_json)
        return _show_dry_run(planned, as_json=as_json)
    outcome = call_flow("rollback_model", name, to, fleet_of(fleet), as_json=as_json)
    if not as_json:
        _show_move(outcome.result)
    return show_deployment(outcome, as_json=as_json)


def _show_dry_run(outcome: FlowResult[Release], *, as_json: bool) -> None:
    release = outcome.result
    if as_json:
        return dump(release)
    say(outcome.message)
    _show_move(release)
    serving = open_ledger().releases.running(release.model)
    if serving and serving.release:
        changed = compare(serving.release, release).model_copy(update={"measured": ()})
        show_document(comparison_document(changed))
    return show_record(release, as_json=False)


def _show_move(release: Release) -> None:
    if release.placement and release.placement.moved:
        say(f"placed again: {release.placement.moved}", style="yellow")
