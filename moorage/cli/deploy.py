"""`moorage deploy`, `plan`, `retire`, `load`, `unload` and `serve`."""

from os.path import isdir
from pathlib import Path
from typing import Annotated, Any

import typer

from moorage.adapters.engines.schemas import check_early
from moorage.adapters.files.specs import load_fleet, load_spec
from moorage.adapters.system.settings import Settings
from moorage.cli import options
from moorage.cli.any_model import AnyModel, spec_or_source
from moorage.cli.completion import specs as specs_there
from moorage.cli.dry_run import call_dry_run
from moorage.cli.flows import call_flow
from moorage.cli.options import (
    AsJson,
    ModelName,
    Yes,
    existing,
    fleet_of,
    folder_of_specs,
    require_model,
)
from moorage.cli.output import print_answer, say
from moorage.cli.records import show_deployment, show_record

FleetFile = Annotated[
    Path | None,
    typer.Option("--fleet", help="Fleet file; else fleet.yaml next to it, else this machine."),
]
RunLimit = Annotated[
    int,
    typer.Option(
        min=1,
        max=1024,
        help="Flow runs at the same time in each of three groups: reconciles, deploys, all others.",
    ),
]


def deploy(
    specs: Annotated[
        list[Path],
        typer.Argument(
            metavar="SPEC...",
            help="Spec of the model, as for `plan`. Of several, or of a folder, what differs from"
            " what serves is deployed, as by `apply`.",
            autocompletion=specs_there,
        ),
    ],
    fleet: FleetFile = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what serves even if nothing has changed.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Deploy a model: download, place, launch, and prove that it answers."""
    if len(specs) > 1 or isdir(specs[0]):
        if force:
            raise typer.BadParameter(
                "is for one spec; `moorage redeploy --force` is for several models",
                param_hint="--force",
            )
        from moorage.cli.apply import apply  # noqa: PLC0415  (one model needs none of it)

        files = [folder_of_specs(one) if isdir(one) else existing(one) for one in specs]
        return apply(files, fleet, yes=yes, as_json=as_json)
    path = existing(specs[0])
    wanted, hosts = load_spec(path), load_fleet(fleet, path)
    check_early(wanted, hosts, Settings().root)
    outcome = call_flow("deploy_model", wanted, hosts, force, as_json=as_json)
    return show_deployment(outcome, as_json=as_json)


def plan(model: AnyModel, fleet: FleetFile = None, as_json: AsJson = False) -> None:
    """Show exactly what `deploy` would run, and why. Nothing is claimed or started."""
    wanted, path = spec_or_source(model)
    hosts = load_fleet(fleet, path)
    check_early(wanted, hosts, Settings().root)
    outcome = call_dry_run("plan_deploy", wanted, hosts, as_json=as_json)
    if outcome.name == "Unchanged" and not as_json:
        return say(f"{outcome.message}: a deploy would change nothing")
    return show_record(outcome.result, as_json=as_json)


def retire(name: ModelName, as_json: AsJson = False) -> None:
    """Stop the running release of a model and free its claims; its failures leave `status`."""
    require_model(name)
    _change("retire_model", name, as_json=as_json)


def _change(flow: str, model: str, *parameters: Any, as_json: bool) -> None:
    outcome = call_flow(flow, model, *parameters, as_json=as_json)
    content = {"model": model, "release": outcome.result or None, "message": outcome.message}
    print_answer(content, outcome.message, as_json=as_json)


def unload(
    name: ModelName,
    reason: Annotated[str, typer.Option(help="Why, for the record.")] = "requested",
    as_json: AsJson = False,
) -> None:
    """Put a model to sleep: free its claims, but keep its release, which a request wakes."""
    require_model(name)
    _change("sleep_model", name, reason, as_json=as_json)


def load(name: ModelName, fleet: options.FleetFile = None, as_json: AsJson = False) -> None:
    """Wake a model that sleeps: it serves again where it ran, exactly as it was planned."""
    require_model(name)
    _change("wake_model", name, fleet_of(fleet), as_json=as_json)


def serve(
    limit: RunLimit = 8,
    host: Annotated[
        str, typer.Option(help="Where the server listens: an address, 0.0.0.0 for all.")
    ] = "",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Its port; 0 = as Prefect's settings say.")
    ] = 0,
    metrics_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port for metrics on the loopback; 0 = none.")
    ] = 0,
    no_login: Annotated[
        bool,
        typer.Option(
            "--no-login",
            help="Let every user of this machine deploy through the API, without a login.",
        ),
    ] = False,
    show_login: Annotated[
        bool, typer.Option("--show-login", help="Print user:password of the server and exit.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve all flows: ready for the Prefect UI, schedules and the API.

    Uses the server of PREFECT_API_URL, or starts one on this machine. That server requires a login.
    The first start creates the login in MOORAGE_HOME, where commands read it.
    """
    from moorage.cli import serve  # noqa: PLC0415  (imports Prefect, see run_flow)

    if show_login:
        serve.show_login(as_json=as_json)
    else:
        serve.serve_flows(limit, host=host, port=port, metrics_port=metrics_port, no_login=no_login)
