"""The commands."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter

from moorage.adapters.engines.argument_check import check_early
from moorage.adapters.files.pretrained import warm
from moorage.adapters.files.specs import load_fleet, load_spec
from moorage.adapters.ledger import Ledger
from moorage.adapters.system.settings import Settings
from moorage.cli import apply as files
from moorage.cli import approvals as approval_commands
from moorage.cli import doctor as doctor_checks
from moorage.cli import endpoint as endpoints
from moorage.cli import exporting, inventory, keys, lora, render, schemas
from moorage.cli import fleet as fleet_commands
from moorage.cli import history as releases
from moorage.cli import ledger as ledger_commands
from moorage.cli import memory as memory_counts
from moorage.cli import models as model_commands
from moorage.cli import policy as policy_commands
from moorage.cli import reconcile as reconciling
from moorage.cli import redeploy as redeployments
from moorage.cli import show as pages
from moorage.cli.find import known, release_of, unknown
from moorage.cli.flows import Outcome, existing, exit_code, guarded, run_flow
from moorage.cli.output import err
from moorage.common.failures import ExitCode
from moorage.common.input_value import LARGEST
from moorage.engines.registry import ENGINES
from moorage.inventory.fleet import Fleet
from moorage.releases.release import Release, ReleaseRow
from moorage.releases.timeline import Transition
from moorage.spec import ModelSpec, Name

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Finds every model a berth: deploys LLM inference servers, and keeps a record of why.",
)

app.command()(endpoints.endpoint)
app.command()(releases.diff)
app.command()(releases.rollback)
app.command()(files.apply)
app.command()(redeployments.redeploy)
app.command()(approval_commands.approvals)
app.command()(approval_commands.approve)
app.command()(exporting.export)
app.command("import")(files.take_in)
app.add_typer(lora.app, name="lora")
app.add_typer(fleet_commands.commands, name="fleet")
app.add_typer(ledger_commands.commands, name="ledger")
app.add_typer(policy_commands.app, name="policy")
app.command()(reconciling.reconcile)
app.add_typer(model_commands.commands, name="models")

SpecFile = Annotated[
    Path, typer.Argument(help="Spec of the model: a YAML file, or NAME for deployments/NAME.yaml.")
]
FleetFile = Annotated[
    Path | None,
    typer.Option("--fleet", help="Fleet file; else fleet.yaml beside the spec, else this machine."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
ModelName = Annotated[str, typer.Argument(help="Name of the model.")]


def main() -> None:
    """Entry point of the command `moorage`."""
    app()


@app.command()
def deploy(spec: SpecFile, fleet: FleetFile = None, as_json: AsJson = False) -> None:
    """Deploy a model: download, place, launch, and prove that it answers."""

    def start(wanted: ModelSpec, hosts: Fleet) -> Awaitable[Any]:
        from flows.deploy_model import deploy_model  # noqa: PLC0415  (see run_flow)

        return deploy_model(wanted, hosts, return_state=True)

    render.deployed(_run_on_spec(start, spec, fleet, as_json=as_json), as_json=as_json)


@app.command()
def plan(spec: SpecFile, fleet: FleetFile = None, as_json: AsJson = False) -> None:
    """Show exactly what `deploy` would run, and why. Nothing is claimed or started."""

    def start(wanted: ModelSpec, hosts: Fleet) -> Awaitable[Any]:
        from flows.plan_model import plan_model  # noqa: PLC0415  (see run_flow)

        return plan_model(wanted, hosts, return_state=True)

    render.planned(_run_on_spec(start, spec, fleet, as_json=as_json), as_json=as_json)


@app.command()
def memory(
    spec: SpecFile,
    tp: Annotated[
        int | None, typer.Option(min=1, max=65_536, help="Tensor-parallel ranks.")
    ] = None,
    pp: Annotated[int | None, typer.Option(min=1, max=65_536, help="Pipeline stages.")] = None,
    context: Annotated[
        int | None, typer.Option(min=1, max=LARGEST, help="Longest request in tokens.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=LARGEST, help="Requests of that length at once.")
    ] = None,
    accelerator: Annotated[
        str | None, typer.Option(help="Its size, such as 24GiB, or its name, such as h100.")
    ] = None,
    kv_cache_dtype: Annotated[
        str | None, typer.Option(help="Element type of the KV cache, such as fp8.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count the accelerator memory that a model needs, from its configuration and headers."""
    choices = memory_counts.Choices(
        tensor=tp,
        pipeline=pp,
        context=context,
        concurrency=concurrency,
        kv_cache_dtype=kv_cache_dtype,
    )
    guarded(
        lambda: memory_counts.show(spec, accelerator, choices, as_json=as_json), as_json=as_json
    )


@app.command()
def retire(name: ModelName, as_json: AsJson = False) -> None:
    """Stop what serves a model and free what it holds."""

    def action() -> Outcome[str]:
        TypeAdapter(Name).validate_python(name)

        def start() -> Awaitable[Any]:
            from flows.retire_model import retire_model  # noqa: PLC0415  (see run_flow)

            return retire_model(name, return_state=True)

        return run_flow(start, as_json=as_json)

    render.retired(name, guarded(action, as_json=as_json), as_json=as_json)


@app.command()
def status(
    name: Annotated[str | None, typer.Argument(help="Only this model.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show every model, whether it really runs, where it answers, and what was left behind."""

    def action() -> list[tuple[ReleaseRow, render.Seen]]:
        rows = [row for row in _ledger().releases.latest() if name in (None, row.model)]
        if name and not rows:
            raise unknown(_ledger(), name, f"no model is named '{name}'")
        serving = [_ledger().releases.running(row.model) or row for row in rows]
        left = [row for row in _ledger().releases.not_undone() if name in (None, row.model)]
        shown = {row.id: row for row in (*serving, *left)}
        return [(row, render.observed(row, Settings())) for row in shown.values()]

    render.status(guarded(action, as_json=as_json), as_json=as_json)


@app.command()
def history(name: ModelName, as_json: AsJson = False) -> None:
    """Show all releases of a model, newest first."""
    rows = guarded(lambda: known(_ledger(), name), as_json=as_json)
    render.history(rows, as_json=as_json)


@app.command()
def show(
    release: Annotated[str, typer.Argument(help="A release such as NAME.v3, or NAME.")],
    as_json: AsJson = False,
) -> None:
    """Show the record of a release: every decision, flag, step and change of state."""

    def action() -> tuple[ReleaseRow, tuple[Transition, ...]]:
        row = release_of(_ledger(), release)
        return row, _ledger().releases.transitions(row.id)

    row, log = guarded(action, as_json=as_json)
    pages.show(row, log, as_json=as_json)


@app.command()
def logs(
    name: Annotated[str, typer.Argument(help="Name of a model, or a release.")],
    tail: Annotated[
        int, typer.Option("--tail", "-n", min=1, max=1_000_000, help="How many lines.")
    ] = 200,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on printing.")] = False,
    container: Annotated[
        str, typer.Option(help="One container by name, such as a follower's or Ray's.")
    ] = "",
) -> None:
    """Print the engine's log; of a release that failed, the last lines that were kept."""
    row = guarded(lambda: release_of(_ledger(), name))
    render.learn(row)
    shown = guarded(lambda: render.log_text(row, tail, Settings(), container))
    sys.stdout.write(shown + "\n" * bool(shown))
    if not (shown or row.workloads):
        err.print(f"no log is left of {row.id}: it is {row.state}", highlight=False)
    while follow and row.workloads:
        time.sleep(1)
        text = guarded(lambda: render.log_text(row, 10_000, Settings(), container))
        sys.stdout.write(render.new_lines(shown, text))
        sys.stdout.flush()
        shown = text


@app.command()
def chat(
    name: ModelName,
    prompt: Annotated[str, typer.Argument(help="What to say.")],
    max_tokens: Annotated[
        int, typer.Option(min=1, max=LARGEST, help="Longest answer in tokens.")
    ] = 64,
    api_key: Annotated[
        str, typer.Option(envvar="MOORAGE_API_KEY", help="Key; else the one of `moorage key`.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Ask a deployed model something."""

    def action() -> None:
        row = _running(name)
        key = keys.key_of(row, api_key)
        render.answer(row, prompt, max_tokens, key, as_json=as_json)

    guarded(action, as_json=as_json)


@app.command()
def key(name: ModelName, as_json: AsJson = False) -> None:
    """Print the API key that a deployed model asks for."""
    guarded(lambda: keys.show(_running(name), as_json=as_json), as_json=as_json)


@app.command()
def engines(as_json: AsJson = False) -> None:
    """Show the engines: where they run, what they serve, which image they come in."""
    inventory.engines(list(ENGINES.values()), as_json=as_json)


@app.command()
def schema(
    image: Annotated[str | None, typer.Option(help="Ask the vLLM in this image.")] = None,
    installed: Annotated[
        bool, typer.Option("--installed", help="Ask the vLLM that is installed here.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find out which arguments a vLLM takes, and check `engine.args` with that from then on.

    Without an option, show the versions whose arguments are known.
    """
    guarded(lambda: schemas.show(image, installed=installed, as_json=as_json), as_json=as_json)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Check what this machine can run, and say how to mend what is missing."""
    checks = doctor_checks.examine(Settings())
    inventory.doctor(checks, as_json=as_json)
    if any(check.broken for check in checks):
        exit_code(ExitCode.MACHINE)


@app.command()
def serve(
    limit: Annotated[int, typer.Option(min=1, max=1024, help="Flow runs at the same time.")] = 8,
    no_login: Annotated[
        bool,
        typer.Option("--no-login", help="Let every user of this machine deploy through the API."),
    ] = False,
    show_login: Annotated[
        bool, typer.Option("--show-login", help="Print user:password of the server, and end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve all flows: ready for the Prefect UI, schedules and the API.

    Uses the server of PREFECT_API_URL, or starts one on this machine. That one asks for a login,
    which is made at the first start and kept in MOORAGE_HOME; commands take it from there.
    """
    from moorage.cli import serve  # noqa: PLC0415  (imports Prefect, see run_flow)

    if show_login:
        guarded(lambda: serve.show_login(as_json=as_json), as_json=as_json)
    else:
        guarded(lambda: serve.serve_flows(limit, no_login=no_login), as_json=as_json)


def _run_on_spec(
    start: Callable[[ModelSpec, Fleet], Awaitable[Any]],
    spec: Path,
    fleet: Path | None,
    *,
    as_json: bool,
) -> Outcome[Release]:
    """Read the files, then run a flow on what they hold."""

    def begin(wanted: ModelSpec, hosts: Fleet) -> Awaitable[Any]:
        begun = start(wanted, hosts)
        warm()
        return begun

    def action() -> Outcome[Release]:
        path = existing(spec)
        wanted, hosts = load_spec(path), load_fleet(fleet, path)
        check_early(wanted, hosts, Settings().root)
        return run_flow(lambda: begin(wanted, hosts), as_json=as_json)

    return guarded(action, as_json=as_json)


def _ledger() -> Ledger:
    return Ledger(Settings().ledger)


def _running(name: str) -> ReleaseRow:
    row = _ledger().releases.running(name)
    if row is None:
        raise unknown(_ledger(), name, f"{name} is not running")
    return row


if __name__ == "__main__":
    main()
