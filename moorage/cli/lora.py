"""`moorage lora`: LoRA adapters of a running model."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from moorage.adapters.engines.engine_http import served_names
from moorage.adapters.files.specs import InvalidFile, absolute
from moorage.cli.commands import Commands
from moorage.cli.endpoint import key_of, running_release
from moorage.cli.flows import call_flow
from moorage.cli.options import ApiKey, AsJson, ModelName, require_name
from moorage.cli.output import dump, print_answer, print_table
from moorage.common.failures import Cause
from moorage.models.pin import AssetRole, Pin
from moorage.operations.flow_result import FlowResult
from moorage.releases.loaded_adapters import loaded
from moorage.releases.release_row import ReleaseRow
from moorage.reports.problems import problems_of
from moorage.spec import AdapterSpec

app = Commands(no_args_is_help=True, help="LoRA adapters of a running model: load, unload, list.")


@app.command()
def load(
    model: ModelName,
    adapter: Annotated[
        str,
        typer.Argument(
            metavar="NAME=SOURCE",
            help="Name to serve it under, and its source: hf://org/repo or file://dir.",
        ),
    ],
    revision: Annotated[
        str | None,
        typer.Option(help="Branch, tag or commit on the hub. Default: the default branch."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Load an adapter into every replica of a running model, or into none."""
    require_name(model)
    wanted = _adapter(adapter, revision)
    outcome: FlowResult[Pin] = call_flow("load_adapter", model, wanted, as_json=as_json)
    content = {"outcome": outcome.name.lower(), "message": outcome.message, "model": model}
    print_answer(content | {"adapter": outcome.result}, outcome.message, as_json=as_json)


@app.command()
def unload(
    model: ModelName,
    name: Annotated[str, typer.Argument(help="Name of the adapter.")],
    as_json: AsJson = False,
) -> None:
    """Unload an adapter from every replica; the model keeps serving."""
    require_name(model)
    require_name(name)
    outcome: FlowResult[str] = call_flow("unload_adapter", model, name, as_json=as_json)
    content = {"message": outcome.message, "model": model, "adapter": name}
    print_answer(content | {"release": outcome.result}, outcome.message, as_json=as_json)


@app.command(name="list")
def show(model: ModelName, api_key: ApiKey = "", as_json: AsJson = False) -> None:
    """Show the adapters of a model, from its spec or loaded later, and the replicas of each."""
    row = running_release(model)
    rows = _entries(row, asyncio.run(_served(row, key_of(row, api_key))))
    if as_json:
        return dump(rows)
    return print_table(
        ("adapter", "source", "revision", "rank", "from", "served by"),
        [
            (
                one["name"],
                one["source"],
                one["revision"][:18],
                str(one["rank"] or "not known"),
                one["from"],
                f"{len(one['served_by'])} of {one['replicas']} replicas",
            )
            for one in rows
        ],
        empty=f"{model} has no adapters.",
    )


def _adapter(text: str, revision: str | None) -> AdapterSpec:
    name, _, source = text.partition("=")
    content = {"name": name, "source": absolute(source, Path.cwd()), "revision": revision}
    try:
        return AdapterSpec.model_validate(content)
    except ValidationError as error:
        raise InvalidFile(Cause.BAD_SETTING, problems_of(error, AdapterSpec)) from error


def _entries(row: ReleaseRow, served: dict[str, frozenset[str]]) -> list[dict[str, Any]]:
    companions = row.release.companions if row.release else ()
    of_spec = [pin for pin in companions if pin.role == AssetRole.ADAPTER]
    return [
        {
            **pin.model_dump(mode="json", exclude={"role"}),
            "from": origin,
            "served_by": [workload for workload, names in served.items() if pin.name in names],
            "replicas": len(served),
        }
        for origin, pins in (("spec", of_spec), ("loaded", loaded(row)))
        for pin in pins
    ]


async def _served(row: ReleaseRow, api_key: str) -> dict[str, frozenset[str]]:
    """The names that each replica lists; empty for a replica that does not answer."""
    found = await asyncio.gather(*(served_names(one.endpoint, api_key) for one in row.serving))
    return {one.name: names or frozenset() for one, names in zip(row.serving, found, strict=True)}
