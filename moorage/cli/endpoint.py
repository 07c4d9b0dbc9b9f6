"""`moorage endpoint` and `chat`: a model's URL, its API key, and a chat with it."""

import platform
from typing import Annotated

import typer

from moorage.adapters.ledger import Ledger
from moorage.cli.completion import models
from moorage.cli.options import ApiKey, AsJson, ModelName, Prompt, open_ledger, unknown_model
from moorage.cli.output import dump, print_table
from moorage.common.failures import Cause, Failure
from moorage.common.values import LARGEST
from moorage.gateway.gateway import Gateway
from moorage.releases.release_row import ReleaseRow
from moorage.releases.routing import Route, models_listing


def endpoint(
    name: Annotated[
        str, typer.Argument(help="Name of the model. Omit it with --all.", autocompletion=models)
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="List every running model.")] = False,
    direct: Annotated[
        bool, typer.Option("--direct", help="The replicas' own addresses, not the gateway's.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON; with --all as OpenAI's `/v1/models` lists.")
    ] = False,
) -> None:
    """Print the base URL of a model for OpenAI clients: of the gateway, else of each replica.

    Fails when the model is not running.
    """
    if bool(name) == every:
        raise Failure(Cause.BAD_SETTING, "pass either a model or --all")
    ledger = open_ledger()
    gateways = [] if direct else gateway_addresses(ledger)
    routes = _routes(ledger, name, through_gateway=bool(gateways))
    if name and not routes:
        raise _not_running(ledger, name)
    listing = models_listing(routes)
    for entry in listing["data"]:
        entry["gateways"] = gateways
    if every and not as_json:
        rows = [
            (e["id"], e["release"], e["state"], "\n".join(gateways or e["endpoints"]))
            for e in listing["data"]
        ]
        return print_table(("model", "release", "state", "endpoint"), rows, "No model is running.")
    if as_json:
        return dump(listing if every else listing["data"][0])
    for url in gateways or listing["data"][0]["endpoints"]:
        typer.echo(url)
    return None


def gateway_addresses(ledger: Ledger) -> list[str]:
    """Base URLs, for OpenAI clients on this machine, of the gateways that follow the ledger."""
    following = [one for one in ledger.gateways.all() if one.epoch and not one.problem]
    return [f"{url}/v1" for one in following if (url := one.url_from(platform.node()))]


def key_of(row: ReleaseRow, given: str = "") -> str:
    """The API key for a release: the user's, else the release's own; empty = it needs none.

    Raises `SECRET_MISSING` when this machine cannot read the release's key.
    """
    name = "" if given else _key_name(row)
    if not name:
        return given
    from moorage.adapters.secrets import read_secrets  # noqa: PLC0415  (`endpoint` needs none)

    return read_secrets([name])[name]


def _key_name(row: ReleaseRow) -> str:
    if row.plan is None:
        return ""
    from moorage.engines.engine_secrets import engine_secret  # noqa: PLC0415  (as above)

    return engine_secret(row.plan)


def show_key(name: ModelName, as_json: AsJson = False) -> None:
    """Print the API key that the engine of a running model asks for."""
    row = running_release(name)
    secret = _key_name(row)
    if not secret:
        raise Failure(
            Cause.SECRET_MISSING,
            f"{row.id} needs no key",
            suggestion="Only a vLLM or llama.cpp that other machines can reach has one: set `bind`"
            " of its host in the fleet file, retire the model and deploy it again.",
        )
    value = key_of(row)
    if as_json:
        return dump({"release": row.id, "secret": secret, "key": value})
    return typer.echo(value)


def chat(
    name: ModelName,
    prompt: Prompt = "",
    max_tokens: Annotated[
        int, typer.Option(min=1, max=LARGEST, help="Maximum length of the answer in tokens.")
    ] = 512,
    api_key: ApiKey = "",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say how fast the answer came.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send a prompt to a model: through the gateway, which also wakes it, else to a replica."""
    from moorage.cli import conversation  # noqa: PLC0415  (`endpoint` needs none)

    row, url, key = _way_to(name, api_key)
    model = conversation.Conversation(row, url, key, max_tokens)
    prompt = prompt or conversation.read_prompt(answers_once=as_json)
    if as_json:
        return dump(model.answer(prompt))
    if prompt:
        return conversation.show(model, prompt, figures=verbose)
    return conversation.talk(model, figures=verbose)


def _way_to(name: str, api_key: str) -> tuple[ReleaseRow, str, str]:
    ledger = open_ledger()
    usable = (one for one in ledger.gateways.all() if _is_open(one, api_key))
    gateway = next(filter(None, (one.url_from(platform.node()) for one in usable)), None)
    routes = _routes(ledger, name, through_gateway=True) if gateway else []
    if gateway and routes and not routes[0].other_protocol:
        return ledger.releases.get(routes[0].release), gateway, api_key
    row = running_release(name)
    return row, row.serving[0].endpoint, key_of(row, api_key)


def _routes(ledger: Ledger, name: str, *, through_gateway: bool) -> list[Route]:
    """The routes to a model, or to all for an empty name; gateways also hold requests."""
    found = ledger.routes.current()
    held = (*found.sleepers, *found.making_room) if through_gateway else ()
    return [one for one in (*found.serving, *held) if name in ("", one.model)]


def _is_open(gateway: Gateway, api_key: str) -> bool:
    """Whether a gateway follows the ledger and this command can use it, with or without a key."""
    options = gateway.options
    follows = gateway.epoch and not gateway.problem and not options.is_encrypted
    return bool(follows and (api_key or not options.requires_key))


def _not_running(ledger: Ledger, name: str) -> Failure:
    state = "not running"
    advice = f"`moorage deploy {name}` starts it; `moorage history {name}` shows why it ended."
    if ledger.releases.asleep(name):
        state, advice = "asleep", f"`moorage load {name}` wakes it."
    elif name not in ledger.releases.models():
        return unknown_model(ledger, name)
    elif moved := [row.state for row in ledger.releases.unfinished() if row.model == name]:
        state, advice = moved[-1], "`moorage status` shows when it serves."
    return Failure(Cause.UNKNOWN_RELEASE, f"{name} is {state}", suggestion=advice)


def running_release(name: str) -> ReleaseRow:
    """The release that serves a model; raises `UNKNOWN_RELEASE` when none serves it."""
    ledger = open_ledger()
    row = ledger.releases.running(name)
    if row is None:
        raise _not_running(ledger, name)
    return row
