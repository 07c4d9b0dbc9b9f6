"""`moorage redeploy`, `approvals`, `approve` and `reconcile`: redeploy or repair serving models."""

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from moorage.adapters.ledger.locks import ASKS
from moorage.adapters.system.process import command_line_user
from moorage.cli.dry_run import call_dry_run
from moorage.cli.flows import call_flow
from moorage.cli.options import (
    AsJson,
    AtOnce,
    DryRun,
    FleetFile,
    Yes,
    fleet_of,
    open_ledger,
    require_consent,
)
from moorage.cli.output import dump, err, print_answer, print_table, say, show_markdown
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.operations.reconcile.actions import ActionOutcome, exit_code_of
from moorage.operations.redeploy.intent import HEADER, Answer, Redeployed, is_failure, row_of
from moorage.operations.redeploy.selection import Selection, StopAt, WaveSize
from moorage.reports.operations_report import RECONCILE_COLUMNS, reconcile_rows

Patterns = Annotated[
    list[str] | None, typer.Argument(help="Models, or patterns such as 'llama-*'.")
]
Labels = Annotated[
    list[str] | None, typer.Option("--label", "-l", help="Only models with this label: KEY=VALUE.")
]
SpecFolder = Annotated[
    Path | None, typer.Option("--files", help="Folder of specs that replace the recorded ones.")
]
ByPolicy = Annotated[
    bool, typer.Option("--by-policy", help="Follow the `redeploy` section of each model.")
]
Force = Annotated[bool, typer.Option("--force", help="Also redeploy models without changes.")]
Wave = Annotated[
    str, typer.Option(help="Models per wave: a number such as 4, or a share such as 25%.")
]
StopWhen = Annotated[
    str,
    typer.Option(
        help="When to stop: at the first failure, never, or at a share of failures such as 20%."
    ),
]


def redeploy(
    names: Patterns = None,
    every: Annotated[bool, typer.Option("--all", help="All models that run or sleep.")] = False,
    label: Labels = None,
    files: SpecFolder = None,
    by_policy: ByPolicy = False,
    force: Force = False,
    wave: Wave = "1",
    at_once: AtOnce = 4,
    pause: Annotated[int, typer.Option(min=0, max=86_400, help="Seconds between two waves.")] = 0,
    stop_at: StopWhen = "first",
    dry_run: DryRun = False,
    yes: Yes = False,
    fleet: FleetFile = None,
    as_json: AsJson = False,
) -> None:
    """Redeploy models whose branch, image or file has changed, in waves."""
    _check_choice(names or [], label or [], every=every)
    _check_shares(wave, stop_at)
    labels, hosts = _labels(label or []), fleet_of(fleet)
    selection = Selection(names or [], labels, _folder(files), by_policy, force)
    if dry_run:
        ended = call_dry_run("plan_redeployment", selection, hosts, as_json=as_json)
    else:
        if every:
            question = "Redeploy every model that changed, also those that sleep?"
            require_consent(question, yes=yes, as_json=as_json)
        chosen = (selection.names, labels, hosts, selection.files)
        how = (by_policy, force, wave, at_once, pause, stop_at)
        ended = call_flow("redeploy_models", *chosen, *how, as_json=as_json, failed_too=True)
    _show(ended.result, as_json=as_json)


def _check_choice(names: list[str], labels: list[str], *, every: bool) -> None:
    if not (names or labels or every):
        raise Failure(
            Cause.BAD_SETTING,
            "no models selected",
            suggestion="Pass names, --label KEY=VALUE, or --all.",
        )
    if every and names:
        raise Failure(Cause.BAD_SETTING, f"--all, or {' '.join(names)} exclude each other")


def _folder(files: Path | None) -> str:
    if files and not files.is_dir():
        raise Failure(Cause.BAD_SETTING, f"--files {files}: the folder does not exist")
    return str(files.resolve()) if files else ""


def _labels(written: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in written]
    if wrong := [name for name, sign, _ in pairs if not sign]:
        raise Failure(Cause.BAD_SETTING, f"--label {wrong[0]}: a label is KEY=VALUE")
    return {name: value for name, _, value in pairs}


def _check_shares(wave: str, stop_at: str) -> None:
    shares: tuple[tuple[str, Any, str, str], ...] = (
        ("--wave", WaveSize, wave, "a number such as 4, or a share such as 25%"),
        ("--stop-at", StopAt, stop_at, "first, never, or a share such as 20%"),
    )
    for option, kind, value, allowed in shares:
        try:
            TypeAdapter(kind).validate_python(value)
        except ValidationError:
            raise Failure(Cause.BAD_SETTING, f"{option} {value}: allowed: {allowed}") from None


def _show(ended: list[Redeployed], *, as_json: bool) -> None:
    if as_json:
        dump(ended)
    else:
        print_table(HEADER, list(map(row_of, ended)), empty="No model that runs or sleeps matches.")
    if is_failure(ended):
        raise typer.Exit(next((one.exit_code for one in ended if one.exit_code), ExitCode.BUSY))


def approvals(
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan of each.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the flow runs on the Prefect server that wait for approval."""
    with err.status("Prefect starts"):
        from moorage.adapters.prefect.approvals import pending_approvals  # noqa: PLC0415

    found = pending_approvals()
    if as_json:
        return dump(found)
    shown = [
        (
            one.id[:8],
            one.name,
            one.requested_by,
            f"{one.until:%Y-%m-%d %H:%M:%S} UTC" if one.until else "",
        )
        for one in found
    ]
    header = ("run", "name", "requested by", "refused after")
    print_table(header, shown, empty="No flow run waits for approval.")
    for one in found if plan else ():
        show_markdown(f"{one.name}\n\n{one.plan}")
    return None


def approve(
    named: Annotated[
        str,
        typer.Argument(
            metavar="RUN|NAME", help="Id or name of the flow run, or name of the model."
        ),
    ],
    refuse: Annotated[bool, typer.Option("--refuse", help="Refuse instead of approving.")] = False,
    note: Annotated[str, typer.Option(help="The reason, for the run's log.")] = "",
    as_json: AsJson = False,
) -> None:
    """Approve or refuse a flow run that waits for approval."""
    with err.status("Prefect starts"):
        from moorage.adapters.prefect.approvals import answer, find_approval  # noqa: PLC0415

    person = command_line_user().account
    reply = Answer(approve=not refuse, note=f"{note} ({person})" if note else f"by {person}")
    one = find_approval(named)
    if f"{ASKS}{one.id}" in open_ledger().locks.abandoned(ASKS):
        raise Failure(
            Cause.UNKNOWN_APPROVAL,
            f"{one.name}: its process is gone, so nobody would get the answer",
            suggestion="Begin it again. The next `moorage reconcile` ends the old run.",
        )
    answer(one, reply)
    text = f"{'Refused' if refuse else 'Approved'} {one.name}"
    print_answer({"run": one, "answer": reply}, text, as_json=as_json)


def reconcile(fleet: FleetFile = None, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Repair dead, leftover or unreachable releases; show each action and its reason.

    Exits with the code of the first repair that failed.
    """
    hosts = fleet_of(fleet)
    if dry_run:
        ended = call_dry_run("plan_reconcile", hosts, as_json=as_json)
    else:
        ended = call_flow("reconcile_fleet", hosts, as_json=as_json)
    if as_json:
        content = {"outcome": ended.name.lower(), "message": ended.message}
        dump({**content, "actions": [_data(one) for one in ended.result]})
    else:
        say(ended.message)
        if ended.result:
            print_table(RECONCILE_COLUMNS, reconcile_rows(ended.result))
    if code := exit_code_of(ended.result):
        raise typer.Exit(code)


def _data(one: ActionOutcome) -> dict[str, Any]:
    names = ("about", "model", "release", "host", "reason")
    subject = {name: getattr(one.action, name) for name in names}
    return {"deed": one.action.kind, **subject, "done": one.done, "outcome": one.summary}
