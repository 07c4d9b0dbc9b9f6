"""`moorage endpoint`: who answers for a model name now, for clients and for gateways."""

from __future__ import annotations

from typing import Annotated

import typer

from moorage.adapters.ledger import Ledger
from moorage.adapters.system.settings import Settings
from moorage.cli.find import unknown
from moorage.cli.flows import guarded
from moorage.cli.output import dump, print_table
from moorage.common.failures import Cause, Failure
from moorage.releases.routing import Route, models_listing


def endpoint(
    name: Annotated[str, typer.Argument(help="Name of the model; empty with --all.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Every model that is served.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; with --all as OpenAI's `/v1/models` lists.")
    ] = False,
) -> None:
    """Print where a model answers now: one base URL for each replica, as OpenAI clients want it.

    Ends with an error while nobody serves the name.
    """
    found = guarded(lambda: _routes(name, every=every), as_json=as_json)
    listing = models_listing(found)
    if every and not as_json:
        rows = [
            (e["id"], e["release"], e["state"], "\n".join(e["endpoints"])) for e in listing["data"]
        ]
        return print_table(("model", "release", "state", "endpoint"), rows, "Nothing is served.")
    if as_json:
        return dump(listing if every else listing["data"][0])
    for url in listing["data"][0]["endpoints"]:
        typer.echo(url)
    return None


def _routes(name: str, *, every: bool) -> tuple[Route, ...]:
    if bool(name) == every:
        raise Failure(Cause.BAD_SETTING, "name a model, or ask for --all")
    ledger = Ledger(Settings().ledger)
    found = ledger.routes.routes(name)
    if name and not found:
        raise unknown(ledger, name, f"{name} is not running")
    return found
