"""`moorage apply`, `import` and `export`: deployments as files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from moorage.adapters.engines.schemas import check_early
from moorage.adapters.files.specs import FLEET_FILE, load_hosts, load_specs
from moorage.adapters.files.written_specs import write_fleet, write_specs
from moorage.adapters.hosts.liveness import liveness_of
from moorage.adapters.system.settings import Settings
from moorage.cli import options
from moorage.cli.flows import call_flow
from moorage.cli.options import (
    DEPLOYMENTS,
    AsJson,
    AtOnce,
    DryRun,
    Yes,
    open_ledger,
    require_consent,
)
from moorage.cli.output import dump, print_answer, print_table
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.common.units import counted
from moorage.inventory.fleet import Fleet
from moorage.operations.flow_result import FlowResult
from moorage.operations.history.desired import IDLE, Action, Applied, Intent, intents
from moorage.operations.history.rollback import pinned_spec
from moorage.releases.states import DEPLOYED, SERVING
from moorage.spec import ModelSpec
from moorage.spec.one_shot import is_one_shot

FleetFile = Annotated[
    Path | None, typer.Option("--fleet", help="Fleet file; else fleet.yaml next to the specs.")
]
Set = Annotated[
    str,
    typer.Option("--set", help="Name of the set of files. Default: the folder's absolute path."),
]


def apply(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Folders and files. Default: deployments/.")
    ] = None,
    fleet: FleetFile = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Retire models that were applied from these files and are no longer in them.",
        ),
    ] = False,
    name: Set = "",
    at_once: AtOnce = 4,
    stop_on_failure: Annotated[
        bool, typer.Option("--stop-on-failure", help="Start no more models after a failure.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the running models match the files: show the plan, ask for confirmation, apply it."""
    chosen = paths or [DEPLOYMENTS]
    wanted = _wanted(chosen, fleet, name, prune=prune)
    plan = _plan(wanted, prune=prune)
    work = [intent for intent in plan if intent.action not in IDLE]
    if dry_run or not work:
        return _show_plan(plan, as_json=as_json)
    if not as_json:
        _show_plan(plan, as_json=False)
    require_consent(f"Apply this to {counted(len(work), 'model')}?", yes=yes, as_json=as_json)
    ended = _run(wanted, work, at_once, stop_on_failure, as_json=as_json)
    return _show_applied(plan, ended, as_json=as_json)


def import_models(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="An exported folder.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    name: Set = "",
    at_once: AtOnce = 4,
    as_json: AsJson = False,
) -> None:
    """Import an exported folder: `moorage apply` without retirements."""
    apply([folder], None, dry_run, yes, False, name, at_once, False, as_json)


class _Wanted(NamedTuple):
    specs: list[ModelSpec]
    hosts: Fleet
    owner: str


def _wanted(paths: Sequence[Path], fleet: Path | None, name: str, *, prune: bool) -> _Wanted:
    specs, hosts = load_specs(paths), load_hosts(fleet, paths)
    for spec in specs:
        check_early(spec, hosts, Settings().root)
    # Single files do not show which models were removed; a folder does.
    owner = name or (str(paths[0].resolve()) if len(paths) == 1 and paths[0].is_dir() else "")
    if prune and not owner:
        raise Failure(
            Cause.BAD_SETTING,
            "--prune needs a folder or --set: single files do not show which models were removed",
            suggestion="Pass one folder, or name the set of files with `--set NAME`.",
        )
    return _Wanted(specs, hosts, owner)


def _plan(wanted: _Wanted, *, prune: bool) -> tuple[Intent, ...]:
    running = open_ledger().releases.in_states(DEPLOYED)
    digests = {spec.name: spec.digest for spec in wanted.specs}
    same = [row for row in running if digests.get(row.model) == row.spec_digest]
    awake = [row for row in same if row.state in SERVING]
    seen = zip(awake, liveness_of(awake, Settings()), strict=True)
    dead = {row.id for row, found in seen if not found.alive}
    return intents(wanted.specs, running, dead=dead, owner=wanted.owner, prune=prune)


def _run(
    wanted: _Wanted, work: Sequence[Intent], at_once: int, stop_on_failure: bool, *, as_json: bool
) -> list[Applied]:
    actions = {intent.model: intent.action for intent in work}
    ended = [_note(spec) for spec in wanted.specs if actions.get(spec.name) == Action.NOTED]
    retire = [model for model, action in actions.items() if action == Action.RETIRE]
    specs = [one for one in wanted.specs if actions.get(one.name) not in (None, Action.NOTED)]
    if not retire and not specs:
        return ended
    parameters = (specs, wanted.hosts, retire, wanted.owner, at_once, stop_on_failure)
    outcome: FlowResult[list[Applied]] = call_flow(
        "apply_models", *parameters, as_json=as_json, failed_too=True
    )
    return ended + outcome.result


def _note(spec: ModelSpec) -> Applied:
    """Record spec changes that do not affect the engines; a deploy might find more to change."""
    releases = open_ledger().releases
    row = releases.running(spec.name) or releases.asleep(spec.name)
    if row:
        releases.revise(row, spec)
    return Applied(
        model=spec.name,
        action=Action.NOTED,
        outcome="done" if row else "skipped",
        message=f"recorded in {row.id}" if row else "it is no longer served",
        release=row.id if row else "",
    )


def _show_plan(plan: Sequence[Intent], *, as_json: bool) -> None:
    if as_json:
        return dump({"plan": plan})
    rows = [row for intent in plan for row in _rows(intent)]
    header = ("action", "model", "serves now", "what changes", "now", "then")
    return print_table(header, rows, "The files contain no model: a spec is a file NAME.yaml.")


def _show_applied(plan: Sequence[Intent], ended: Sequence[Applied], *, as_json: bool) -> None:
    if as_json:
        dump({"plan": plan, "applied": ended})
    else:
        rows = [(one.model, one.action, one.outcome, one.message) for one in ended]
        print_table(("model", "action", "outcome", ""), rows)
    failed = [one.exit_code for one in ended if one.exit_code]
    if failed or any(one.outcome == "skipped" for one in ended):
        raise typer.Exit(failed[0] if failed else ExitCode.BUSY)


def _rows(intent: Intent) -> list[tuple[str, ...]]:
    """Table lines of a model, one for each field that changes; at least one."""
    first = (intent.action, intent.model, intent.release)
    changes = [(one.what, one.before or "-", one.after or "-") for one in intent.changes]
    cells = changes or [(intent.note, "", "")]
    return [(*(("", "", "") if at else first), *cell) for at, cell in enumerate(cells)]


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write the files.")],
    pinned: Annotated[
        bool, typer.Option("--pinned", help="Write the exact revisions that run.")
    ] = False,
    fleet: options.FleetFile = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files with other content.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the running models as files: one spec for each model, and the fleet.

    Models of `moorage run` are left out.
    """
    deployed = open_ledger().releases.in_states(DEPLOYED)
    rows = [row for row in deployed if not is_one_shot(row.model)]
    unread = [row.id for row in rows if row.release is None]
    if unread:
        detail = f"another version of moorage wrote the record of {', '.join(unread)}"
        raise Failure(Cause.UNKNOWN_RELEASE, detail)
    releases = sorted((row.release for row in rows if row.release), key=lambda one: one.model)
    specs = [pinned_spec(one) if pinned else one.spec for one in releases]
    written = write_specs(folder, specs, overwrite=overwrite)
    hosts = fleet or DEPLOYMENTS / FLEET_FILE
    if fleet or hosts.exists():
        written.append(write_fleet(folder, hosts, overwrite=overwrite))
    files = [str(path) for path in written]
    text = "\n".join(files) or "No model is running: nothing to export."
    return print_answer({"files": files}, text, as_json=as_json)
