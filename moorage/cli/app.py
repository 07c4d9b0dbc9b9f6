"""The commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter

from moorage.adapters.engines.argument_check import check_early
from moorage.adapters.files.pretrained import warm
from moorage.adapters.files.specs import load_fleet, load_spec
from moorage.adapters.system.settings import Settings
from moorage.cli import (
    apply,
    endpoint,
    fleet,
    ledger,
    lora,
    machine,
    memory,
    models,
    policy,
    redeploy,
    releases,
    render,
    status,
)
from moorage.cli.flows import FlowResult, exit_on_failure, run_flow
from moorage.cli.options import AsJson, ModelName, SpecFile, existing
from moorage.inventory.fleet import Fleet
from moorage.releases.release import Release
from moorage.spec import ModelSpec, Name

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Finds every model a berth: deploys LLM inference servers, and keeps a record of why.",
)

FleetFile = Annotated[
    Path | None,
    typer.Option("--fleet", help="Fleet file; else fleet.yaml next to it, else this machine."),
]


def main() -> None:
    """Entry point of the command `moorage`."""
    app()


@app.command()
def deploy(spec: SpecFile, fleet: FleetFile = None, as_json: AsJson = False) -> None:
    """Deploy a model: download, place, launch, and prove that it answers."""

    def start(wanted: ModelSpec, hosts: Fleet) -> Awaitable[Any]:
        from flows.deploy_model import deploy_model  # noqa: PLC0415  (see run_flow)

        return deploy_model(wanted, hosts, return_state=True)

    render.show_deployment(_run_on_spec(start, spec, fleet, as_json=as_json), as_json=as_json)


@app.command()
def plan(spec: SpecFile, fleet: FleetFile = None, as_json: AsJson = False) -> None:
    """Show exactly what `deploy` would run, and why. Nothing is claimed or started."""

    def start(wanted: ModelSpec, hosts: Fleet) -> Awaitable[Any]:
        from flows.plan_model import plan_model  # noqa: PLC0415  (see run_flow)

        return plan_model(wanted, hosts, return_state=True)

    render.show_plan(_run_on_spec(start, spec, fleet, as_json=as_json), as_json=as_json)


@app.command()
def retire(name: ModelName, as_json: AsJson = False) -> None:
    """Stop what serves a model and free what it holds."""

    def action() -> FlowResult[str]:
        TypeAdapter(Name).validate_python(name)

        def start() -> Awaitable[Any]:
            from flows.retire_model import retire_model  # noqa: PLC0415  (see run_flow)

            return retire_model(name, return_state=True)

        return run_flow(start, as_json=as_json)

    render.show_retirement(name, exit_on_failure(action, as_json=as_json), as_json=as_json)


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
        exit_on_failure(lambda: serve.show_login(as_json=as_json), as_json=as_json)
    else:
        exit_on_failure(lambda: serve.serve_flows(limit, no_login=no_login), as_json=as_json)


def _run_on_spec(
    start: Callable[[ModelSpec, Fleet], Awaitable[Any]],
    spec: Path,
    fleet: Path | None,
    *,
    as_json: bool,
) -> FlowResult[Release]:
    """Read the files, then run a flow on what they hold."""

    def begin(wanted: ModelSpec, hosts: Fleet) -> Awaitable[Any]:
        begun = start(wanted, hosts)
        warm()
        return begun

    def action() -> FlowResult[Release]:
        path = existing(spec)
        wanted, hosts = load_spec(path), load_fleet(fleet, path)
        check_early(wanted, hosts, Settings().root)
        return run_flow(lambda: begin(wanted, hosts), as_json=as_json)

    return exit_on_failure(action, as_json=as_json)


for command in (
    memory.memory,
    status.status,
    status.logs,
    releases.history,
    releases.show,
    releases.diff,
    releases.rollback,
    endpoint.endpoint,
    endpoint.key,
    endpoint.chat,
    apply.apply,
    apply.export,
    redeploy.redeploy,
    redeploy.approvals,
    redeploy.approve,
    redeploy.reconcile,
    machine.doctor,
    machine.engines,
    machine.schema,
):
    app.command()(command)
app.command("import")(apply.import_models)
for name, commands in (
    ("fleet", fleet.commands),
    ("ledger", ledger.commands),
    ("lora", lora.app),
    ("models", models.commands),
    ("policy", policy.app),
):
    app.add_typer(commands, name=name)


if __name__ == "__main__":
    main()
