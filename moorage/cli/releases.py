"""`moorage show`, `history`, `diff` and `rollback`: the records of releases."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter
from rich.markup import escape

from moorage.cli import render
from moorage.cli.flows import FlowResult, exit_on_failure, run_flow
from moorage.cli.options import (
    AsJson,
    FleetFile,
    ModelName,
    fleet_of,
    open_ledger,
    record_of,
    release_of,
    releases_of,
    row_json,
)
from moorage.cli.output import dump, out, print_table
from moorage.cli.render import show_document
from moorage.operations.history.comparison import Comparison, compare
from moorage.operations.history.rollback import last_two
from moorage.releases.release import Release, ReleaseRow
from moorage.releases.states import Stay, Transition, stays
from moorage.reports.document import Document
from moorage.reports.history_report import comparison_document, timeline_section
from moorage.reports.record import release_document
from moorage.spec import Name


def history(name: ModelName, as_json: AsJson = False) -> None:
    """Show all releases of a model, newest first."""
    rows = exit_on_failure(lambda: releases_of(open_ledger(), name), as_json=as_json)
    _show_history(rows, as_json=as_json)


def show(
    release: Annotated[str, typer.Argument(help="A release such as NAME.v3, or NAME.")],
    as_json: AsJson = False,
) -> None:
    """Show the record of a release: every decision, flag, step and change of state."""

    def action() -> tuple[ReleaseRow, tuple[Transition, ...]]:
        ledger = open_ledger()
        row = release_of(ledger, release)
        return row, ledger.releases.transitions(row.id)

    row, log = exit_on_failure(action, as_json=as_json)
    _show_release(row, log, as_json=as_json)


def diff(
    before: Annotated[
        str, typer.Argument(metavar="A", help="A release such as NAME.v3; or NAME alone.")
    ],
    after: Annotated[
        str | None, typer.Argument(metavar="B", help="Another; without it NAME's last two.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what differs between two releases, from the spec to the measurements."""

    def action() -> Comparison:
        ledger = open_ledger()
        if after is None:
            return compare(*last_two(before, releases_of(ledger, before)))
        return compare(record_of(ledger, before), record_of(ledger, after))

    comparison = exit_on_failure(action, as_json=as_json)
    if as_json:
        return dump(comparison.model_dump(mode="json"))
    return render.show_document(comparison_document(comparison))


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

    def action() -> FlowResult[Release]:
        TypeAdapter(Name).validate_python(name)
        releases_of(open_ledger(), name)
        hosts = fleet_of(fleet)

        def start() -> Awaitable[Any]:
            from flows.rollback_model import rollback_model  # noqa: PLC0415  (see run_flow)

            return rollback_model(name, to, hosts, dry_run, return_state=True)

        return run_flow(start, as_json=as_json)

    outcome = exit_on_failure(action, as_json=as_json)
    if dry_run and outcome.name != "Unchanged":
        return _show_dry_run(outcome, as_json=as_json)
    if not as_json:
        _show_move(outcome.result)
    return render.show_deployment(outcome, as_json=as_json)


def _show_dry_run(outcome: FlowResult[Release], *, as_json: bool) -> None:
    release = outcome.result
    if as_json:
        return dump(release.model_dump(mode="json"))
    out.print(outcome.message, highlight=False, soft_wrap=True)
    _show_move(release)
    serving = open_ledger().releases.running(release.model)
    if serving and serving.release:
        changed = compare(serving.release, release).model_copy(update={"measured": ()})
        render.show_document(comparison_document(changed))
    return render.show_record(release, as_json=False)


def _show_move(release: Release) -> None:
    if release.placement and release.placement.moved:
        line = f"[yellow]placed anew: {escape(release.placement.moved)}"
        out.print(line, highlight=False, soft_wrap=True)


def _show_release(row: ReleaseRow, log: Sequence[Transition], *, as_json: bool) -> None:
    """Print all that is known of a release.

    Args:
        row: The release.
        log: Its transitions.
        as_json: For a program.
    """
    line = stays(row.created_at, row.flow_run_id, log)
    if row.foreign_record is not None:
        return dump({**row.foreign_record, "states": _states(line)})
    if as_json:
        return dump({**_content(row), "states": _states(line)})
    now, record = datetime.now(UTC), row.as_it_runs
    if record is not None:
        show_document(release_document(record, line, now))
    else:
        cause = row.cause or "in progress"
        out.print(f"{row.id} is {row.state} ({cause}); it has no record.", soft_wrap=True)
        show_document(Document(title=row.id, sections=(timeline_section(line, now),)))
    if row.flow_run_id and (base := _prefect_pages()):
        out.print(f"\n{base}/runs/flow-run/{row.flow_run_id}", soft_wrap=True, highlight=False)
    return None


def _content(row: ReleaseRow) -> dict[str, Any]:
    record = row.as_it_runs
    if record is None:
        return row.model_dump(mode="json", exclude={"release"})
    return {**record.model_dump(mode="json"), "state": row.state, "cause": row.cause}


def _states(line: Sequence[Stay]) -> list[dict[str, Any]]:
    base = _prefect_pages()
    return [{**stay.model_dump(mode="json"), "flow_run_url": _url(base, stay)} for stay in line]


def _url(base: str, stay: Stay) -> str:
    return f"{base}/runs/flow-run/{stay.flow_run_id}" if base and stay.flow_run_id else ""


def _prefect_pages() -> str:
    """Where Prefect shows its pages; empty where no server is set: a temporary one has none."""
    api = os.environ.get("PREFECT_API_URL", "")
    pages = os.environ.get("PREFECT_UI_URL") or api.rstrip("/").removesuffix("/api")
    return pages.rstrip("/")


def _show_history(rows: Sequence[ReleaseRow], *, as_json: bool) -> None:
    """One line a release."""
    repeated = [row.release.rolled_back_to if row.release else "" for row in rows]
    requesters = [row.release.requester if row.release else None for row in rows]
    if as_json:
        entries = zip(rows, repeated, requesters, strict=True)
        return dump(
            [
                {
                    **row_json(row),
                    "rolled_back_to": source,
                    "requester": one.model_dump(mode="json") if one else None,
                }
                for row, source, one in entries
            ]
        )
    return print_table(
        ("release", "state", "created", "revision", "spec", "runs again", "requested by", "cause"),
        [
            (
                row.id,
                row.state,
                f"{row.created_at:%Y-%m-%d %H:%M:%S}",
                row.revision[:18],
                row.spec_digest,
                source,
                one.summary if one else "",
                row.cause,
            )
            for row, source, one in zip(rows, repeated, requesters, strict=True)
        ],
    )
