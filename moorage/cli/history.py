"""`moorage diff` and `moorage rollback`: releases held against each other, and run again."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter
from rich.markup import escape

from moorage.adapters.ledger import Ledger
from moorage.adapters.system.settings import Settings
from moorage.cli import render
from moorage.cli.find import known, record_of
from moorage.cli.fleet import fleet_of
from moorage.cli.flows import Outcome, guarded, run_flow
from moorage.cli.output import dump, out
from moorage.operations.history.comparison import Comparison, compare
from moorage.operations.history.targets import last_two
from moorage.releases.release import Release
from moorage.reports.history_report import comparison_document
from moorage.spec import Name

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
FleetFile = Annotated[
    Path | None, typer.Option("--fleet", help="Fleet file; else deployments/fleet.yaml.")
]


def diff(
    before: Annotated[
        str, typer.Argument(metavar="A", help="A release such as NAME.v3; or NAME alone.")
    ],
    after: Annotated[
        str | None, typer.Argument(metavar="B", help="Another; without it NAME's last two.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what differs between two releases, from what was asked for to what was measured."""

    def action() -> Comparison:
        ledger = Ledger(Settings().ledger)
        if after is None:
            return compare(*last_two(before, known(ledger, before)))
        return compare(record_of(ledger, before), record_of(ledger, after))

    comparison = guarded(action, as_json=as_json)
    if as_json:
        return dump(comparison.model_dump(mode="json"))
    return render.page(comparison_document(comparison))


def rollback(
    name: Annotated[str, typer.Argument(help="Name of the model.")],
    to: Annotated[
        str, typer.Option(help="Release to go back to; else the one before that ran.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would run, and what would change.")
    ] = False,
    fleet: FleetFile = None,
    as_json: AsJson = False,
) -> None:
    """Serve an earlier release again: the same revision, image and plan, as a new release."""

    def action() -> Outcome[Release]:
        TypeAdapter(Name).validate_python(name)
        known(Ledger(Settings().ledger), name)
        hosts = fleet_of(fleet)

        def start() -> Awaitable[Any]:
            from flows.rollback_model import rollback_model  # noqa: PLC0415  (see run_flow)

            return rollback_model(name, to, hosts, dry_run, return_state=True)

        return run_flow(start, as_json=as_json)

    outcome = guarded(action, as_json=as_json)
    if dry_run and outcome.name != "Unchanged":
        return _would_run(outcome, as_json=as_json)
    if not as_json:
        _moved(outcome.result)
    return render.deployed(outcome, as_json=as_json)


def _would_run(outcome: Outcome[Release], *, as_json: bool) -> None:
    release = outcome.result
    if as_json:
        return dump(release.model_dump(mode="json"))
    out.print(outcome.message, highlight=False, soft_wrap=True)
    _moved(release)
    serving = Ledger(Settings().ledger).releases.running(release.model)
    if serving and serving.release:
        changed = compare(serving.release, release).model_copy(update={"measured": ()})
        render.page(comparison_document(changed))
    return render.record(release, as_json=False)


def _moved(release: Release) -> None:
    if release.placement and release.placement.moved:
        told = f"[yellow]placed anew: {escape(release.placement.moved)}"
        out.print(told, highlight=False, soft_wrap=True)
