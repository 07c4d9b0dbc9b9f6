"""`moorage lora`: LoRA adapters of a running model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from moorage.adapters.engines.probe import served_names
from moorage.adapters.files.specs import InvalidFile, absolute
from moorage.adapters.ledger import Ledger
from moorage.adapters.system.settings import Settings
from moorage.cli.endpoint import key_of
from moorage.cli.flows import exit_on_failure, run_flow
from moorage.cli.options import AsJson, ModelName
from moorage.cli.output import dump, out, print_table
from moorage.common.failures import Cause, Failure
from moorage.models.assets import AssetRole, Pin
from moorage.releases.loaded_adapters import loaded
from moorage.releases.release import ReleaseRow
from moorage.reports.problems import problems_of
from moorage.spec import AdapterSpec, Name

app = typer.Typer(
    no_args_is_help=True, help="LoRA adapters of a running model: load, unload, list."
)


@app.command()
def load(
    model: ModelName,
    adapter: Annotated[
        str,
        typer.Argument(
            metavar="NAME=SOURCE", help="Name to serve it under, and hf://org/repo or file://dir."
        ),
    ],
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit on the hub; else the default branch.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Load an adapter into every replica of a running model, or into none."""

    def action() -> Any:
        TypeAdapter(Name).validate_python(model)
        wanted = _adapter(adapter, revision)

        def start() -> Awaitable[Any]:
            from flows.load_adapter import load_adapter  # noqa: PLC0415  (see run_flow)

            return load_adapter(model, wanted, return_state=True)

        return run_flow(start, as_json=as_json)

    outcome = exit_on_failure(action, as_json=as_json)
    pin = outcome.result.model_dump(mode="json")
    _show_message(
        {"outcome": outcome.name.lower(), "message": outcome.message, "model": model}
        | {"adapter": pin},
        as_json=as_json,
    )


@app.command()
def unload(
    model: ModelName,
    name: Annotated[str, typer.Argument(help="Name of the adapter.")],
    as_json: AsJson = False,
) -> None:
    """Unload an adapter from every replica; the model serves on."""

    def action() -> Any:
        for text in (model, name):
            TypeAdapter(Name).validate_python(text)

        def start() -> Awaitable[Any]:
            from flows.unload_adapter import unload_adapter  # noqa: PLC0415  (see run_flow)

            return unload_adapter(model, name, return_state=True)

        return run_flow(start, as_json=as_json)

    outcome = exit_on_failure(action, as_json=as_json)
    content = {"message": outcome.message, "model": model, "adapter": name}
    _show_message(content | {"release": outcome.result}, as_json=as_json)


@app.command(name="list")
def show(
    model: ModelName,
    api_key: Annotated[
        str, typer.Option(envvar="MOORAGE_API_KEY", help="Key; else the one of `moorage key`.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show the adapters of a model: of its spec and loaded since, and which replicas serve them."""

    def action() -> list[dict[str, Any]]:
        row = Ledger(Settings().ledger).releases.running(model)
        if row is None:
            raise Failure(Cause.UNKNOWN_RELEASE, f"{model} is not running")
        return _listed(row, asyncio.run(_served(row, key_of(row, api_key))))

    rows = exit_on_failure(action, as_json=as_json)
    if as_json:
        return dump(rows)
    return print_table(
        ("adapter", "source", "revision", "rank", "from", "served by"),
        [
            (
                row["name"],
                row["source"],
                row["revision"][:18],
                str(row["rank"] or "not known"),
                row["from"],
                f"{len(row['served_by'])} of {row['replicas']} replicas",
            )
            for row in rows
        ],
        empty=f"{model} has no adapters.",
    )


def _adapter(text: str, revision: str | None) -> AdapterSpec:
    name, _, source = text.partition("=")
    content = {"name": name, "source": absolute(source, Path.cwd()), "revision": revision}
    try:
        return AdapterSpec.model_validate(content)
    except ValidationError as error:
        problems = problems_of(error, AdapterSpec)
        raise InvalidFile(Cause.BAD_SETTING, problems) from error


def _listed(row: ReleaseRow, served: dict[str, frozenset[str]]) -> list[dict[str, Any]]:
    companions = row.release.companions if row.release else ()
    of_spec = [pin for pin in companions if pin.role == AssetRole.ADAPTER]
    return [
        _entry(pin, origin, served)
        for origin, pins in (("spec", of_spec), ("loaded", loaded(row)))
        for pin in pins
    ]


def _entry(pin: Pin, origin: str, served: dict[str, frozenset[str]]) -> dict[str, Any]:
    by = [workload for workload, names in served.items() if pin.name in names]
    more = {"from": origin, "served_by": by, "replicas": len(served)}
    return pin.model_dump(mode="json", exclude={"role"}) | more


async def _served(row: ReleaseRow, api_key: str) -> dict[str, frozenset[str]]:
    """What each replica lists now; nothing of one that does not answer."""
    jobs = (served_names(workload.endpoint, api_key) for workload in row.serving)
    found = await asyncio.gather(*jobs)
    pairs = zip(row.serving, found, strict=True)
    return {workload.name: names or frozenset() for workload, names in pairs}


def _show_message(content: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        return dump(content)
    out.print(content["message"], highlight=False, soft_wrap=True)
    return None
