"""`moorage show`, `history`, `diff` and `rollback`: the records of releases."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter

from moorage.adapters.prefect.home_server import running_server
from moorage.adapters.prefect.pages import run_page
from moorage.adapters.system.settings import Settings
from moorage.cli.completion import models
from moorage.cli.endpoint import gateway_addresses
from moorage.cli.flows import call_dry_run, call_flow
from moorage.cli.options import (
    AsJson,
    DryRun,
    FleetFile,
    ModelName,
    fleet_of,
    open_ledger,
    record_of,
    release_of,
    releases_of,
    row_json,
)
from moorage.cli.output import dump, print_table, say, show_document
from moorage.operations.flow_result import FlowResult
from moorage.operations.history.comparison import compare
from moorage.operations.history.rollback import last_two
from moorage.releases.release import Release
from moorage.releases.states import Stay, stays
from moorage.reports.document import Document
from moorage.reports.operations_report import comparison_document
from moorage.reports.record import (
    load_trend,
    plan_document,
    release_document,
    timeline_section,
)
from moorage.spec import Name


def history(name: ModelName, as_json: AsJson = False) -> None:
    """Show all releases of a model, newest first."""
    rows = releases_of(open_ledger(), name)
    repeated = [row.release.rolled_back_to if row.release else "" for row in rows]
    requesters = [row.release.requester if row.release else None for row in rows]
    entries = list(zip(rows, repeated, requesters, strict=True))
    if as_json:
        return dump(
            [
                {**row_json(row), "rolled_back_to": source, "requester": requester}
                for row, source, requester in entries
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
                requester.summary if requester else "",
                row.cause or (f"runs {source} again" if source else ""),
            )
            for row, source, requester in entries
        ],
    )
    if trend := load_trend([row.release for row in reversed(rows) if row.release]):
        say(trend)
    return None


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
    now, record = datetime.now(UTC), row.as_it_runs
    if as_json:
        written = record.model_dump(mode="json") if record else row_json(row)
        now_is = {"state": row.state, "cause": row.cause, "states": _states(line)}
        return dump({**written, **now_is})
    if record:
        show_document(release_document(record, line, now))
    else:
        state = f"{row.state} ({row.cause or 'in progress'})"
        say(f"{row.id} is {state}; it has no record. Its flow run is {row.flow_run_id}.")
        show_document(Document(title=row.id, sections=(timeline_section(line, now),)))
    if url := _run_url(row.flow_run_id):
        say(f"\n{url}")
    return None


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
        comparison = compare(*last_two(before, releases_of(ledger, before)))
    else:
        comparison = compare(record_of(ledger, before), record_of(ledger, after))
    if as_json:
        return dump(comparison)
    return show_document(comparison_document(comparison))


def rollback(
    name: Annotated[str, typer.Argument(help="Name of the model.", autocompletion=models)],
    to: Annotated[
        str, typer.Option(help="Target release. Default: the previous one that ran.")
    ] = "",
    dry_run: DryRun = False,
    fleet: FleetFile = None,
    as_json: AsJson = False,
) -> None:
    """Deploy an earlier release again, with the same revision, image and plan."""
    TypeAdapter(Name).validate_python(name)
    releases_of(open_ledger(), name)
    if dry_run:
        planned = call_dry_run("plan_rollback", name, to, fleet_of(fleet), as_json=as_json)
        return _show_dry_run(planned, as_json=as_json)
    outcome = call_flow("rollback_model", name, to, fleet_of(fleet), as_json=as_json)
    if not as_json:
        _show_move(outcome.result)
    return show_deployment(outcome, as_json=as_json)


def show_record(release: Release, *, as_json: bool) -> None:
    """Print a whole record or plan."""
    if as_json:
        return dump(release)
    planned = not (release.readiness or release.failure)
    return show_document(plan_document(release) if planned else release_document(release))


def show_deployment(outcome: FlowResult[Release], *, as_json: bool) -> None:
    """What a deploy did, and where the release answers."""
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
        say(f"placed anew: {release.placement.moved}", style="yellow")


def _states(line: Sequence[Stay]) -> list[dict[str, Any]]:
    return [
        {**stay.model_dump(mode="json"), "flow_run_url": _run_url(stay.flow_run_id)}
        for stay in line
    ]


def _run_url(flow_run_id: str) -> str:
    """Prefect's page of a flow run; empty where no server is configured, and none of ours runs."""
    kept = running_server(Settings().root)
    api = os.environ.get("PREFECT_API_URL") or (kept.url if kept else "")
    return run_page(api, flow_run_id)
