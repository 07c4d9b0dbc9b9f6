"""`moorage show`: print the record of a release, also for other commands."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from moorage.adapters.prefect.home_server import running_server
from moorage.adapters.prefect.pages import run_page
from moorage.adapters.system.settings import Settings
from moorage.cli.completion import models
from moorage.cli.endpoint import gateway_addresses
from moorage.cli.options import AsJson, open_ledger, release_of, row_json
from moorage.cli.output import dump, say, show_document
from moorage.cli.unfinished import causes
from moorage.operations.flow_result import FlowResult
from moorage.releases.release import Release
from moorage.releases.states import Stay, stays
from moorage.reports.document import Document
from moorage.reports.record import plan_document, release_document
from moorage.reports.timeline import timeline_section


def show(
    release: Annotated[
        str, typer.Argument(help="A release such as NAME.v3, or NAME.", autocompletion=models)
    ],
    as_json: AsJson = False,
) -> None:
    """Show the record of a release: decisions, flags, steps and states."""
    ledger = open_ledger()
    row = release_of(ledger, release)
    line = stays(row.created_at, row.flow_run_id, ledger.releases.transitions(row.id))
    if row.foreign_record is not None:
        return dump({**row.foreign_record, "states": _states(line)})
    now, record, cause = datetime.now(UTC), row.as_it_runs, causes(ledger, [row])[row.id]
    if as_json:
        written = record.model_dump(mode="json") if record else row_json(row)
        now_is = {"state": row.state, "cause": cause, "states": _states(line)}
        return dump({**written, **now_is})
    if record:
        show_document(release_document(record, line, now))
        if cause != row.cause:
            say(f"{row.id} is {row.state}: {cause}")
    else:
        state = f"{row.state} ({cause or 'in progress'})"
        by = f", requested by {line[0].requested_by}" if line[0].requested_by else ""
        say(f"{row.id} is {state}; it has no record. Its flow run is {row.flow_run_id}{by}.")
        show_document(Document(title=row.id, sections=(timeline_section(line, now),)))
    if url := _run_url(row.flow_run_id):
        say(f"\n{url}")
    return None


def show_record(release: Release, *, as_json: bool) -> None:
    """Print a complete record, or a plan."""
    if as_json:
        return dump(release)
    planned = not (release.readiness or release.failure)
    return show_document(plan_document(release) if planned else release_document(release))


def show_deployment(outcome: FlowResult[Release], *, as_json: bool) -> None:
    """Print the outcome of a deploy and the addresses of its release."""
    release = outcome.result
    if as_json:
        content = {"outcome": outcome.name.lower(), "message": outcome.message}
        return dump({**content, "release": release})
    if outcome.name == "Unchanged":
        say(outcome.message)
    else:
        say(f"[bold green]{release.id}[/] serves [bold]{release.model}[/]", markup=True)
    for address in gateway_addresses(open_ledger()):
        say(f"  {address} (gateway)")
    for workload in release.serving:
        say(f"  {workload.url}")
    for line in release.surprises:
        say(f"  {line}", style="yellow")
    hint = f"`moorage show {release.id}` shows why; `moorage retire {release.model}` stops it"
    return say(hint, style="dim")


def _states(line: Sequence[Stay]) -> list[dict[str, Any]]:
    return [
        {**stay.model_dump(mode="json"), "flow_run_url": _run_url(stay.flow_run_id)}
        for stay in line
    ]


def _run_url(flow_run_id: str) -> str:
    """Prefect's page of a flow run; empty if no server is configured or runs for this home."""
    kept = running_server(Settings().root)
    api = os.environ.get("PREFECT_API_URL") or (kept.url if kept else "")
    return run_page(api, flow_run_id)
