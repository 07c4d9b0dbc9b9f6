"""`moorage key`: API keys of the gateway's callers, and the key of an engine."""

import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import token_urlsafe
from typing import Annotated

import typer

from moorage.adapters.gateway.followed_routes import await_gateways
from moorage.adapters.ledger import Ledger
from moorage.adapters.system.settings import Settings
from moorage.cli.commands import Commands
from moorage.cli.endpoint import show_key
from moorage.cli.options import AsJson, open_ledger, require_name
from moorage.cli.output import dump, err, print_answer, print_table
from moorage.common.failures import Cause, Failure
from moorage.gateway.table import ApiKey

PREFIX = "sk-moorage-"
KEY_BYTES = 32
UNITS = {"m": "minutes", "h": "hours", "d": "days"}

app = Commands(
    no_args_is_help=True, help="API keys of callers of the gateway, and the key of an engine."
)
app.command("show")(show_key)

KeyName = Annotated[str, typer.Argument(help="Name of the key, such as a person or a program.")]


@app.command()
def create(
    name: KeyName,
    models: Annotated[
        str, typer.Option(help="Models that it may use, separated by commas. Default: all.")
    ] = "",
    rate: Annotated[
        str, typer.Option(help="Requests that it may make: 60/min, 5/s or 1000/h. Default: any.")
    ] = "",
    tokens: Annotated[
        str, typer.Option(help="Tokens that it may use on one day (UTC): 1M/day. Default: any.")
    ] = "",
    expires: Annotated[
        str, typer.Option(help="How long it is valid, such as 30d or 12h. Default: for ever.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Create an API key and print it. It is shown once: moorage keeps only its digest."""
    require_name(name)
    now = datetime.now(UTC)
    secret = PREFIX + token_urlsafe(KEY_BYTES)
    key = ApiKey(
        name=name,
        digest=sha256(secret.encode()).hexdigest(),
        models=tuple(filter(None, (one.strip() for one in models.split(",")))),
        rate=rate,
        tokens=tokens,
        created_at=now,
        expires=now + _duration(expires) if expires else None,
    )
    ledger = open_ledger()
    ledger.api_keys.add(key)
    _await_gateways(ledger)
    if as_json:
        return dump({**key.model_dump(mode="json", exclude={"digest"}), "key": secret})
    return typer.echo(secret)


@app.command("list")
def list_keys(as_json: AsJson = False) -> None:
    """List the API keys of callers, without the keys themselves."""
    keys = open_ledger().api_keys.all()
    if as_json:
        return dump([key.model_dump(mode="json", exclude={"digest"}) for key in keys])
    return print_table(
        ("key", "models", "rate", "tokens", "created", "expires"),
        [
            (
                key.name,
                ", ".join(key.models) or "all",
                key.rate or "any",
                key.tokens or "any",
                f"{key.created_at:%Y-%m-%d}",
                f"{key.expires:%Y-%m-%d %H:%M}" if key.expires else "never",
            )
            for key in keys
        ],
        empty="There is no key. Create one with `moorage key create NAME`.",
    )


@app.command()
def revoke(name: KeyName, as_json: AsJson = False) -> None:
    """Revoke an API key: requests with it are refused from now on."""
    ledger = open_ledger()
    if not ledger.api_keys.revoke(name):
        raise Failure(
            Cause.BAD_SETTING,
            f"there is no key '{name}'",
            suggestion="`moorage key list` lists them.",
        )
    _await_gateways(ledger)
    print_answer({"key": name, "revoked": True}, f"key {name} is revoked", as_json=as_json)


def _duration(text: str) -> timedelta:
    found = re.fullmatch(r"([1-9]\d{0,5})([mhd])", text)
    if not found:
        raise Failure(
            Cause.BAD_SETTING,
            f"'{text}' is no duration",
            suggestion="Write a number and a unit: 90m, 12h or 30d.",
        )
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def _await_gateways(ledger: Ledger) -> None:
    for line in await_gateways(ledger, Settings().root):
        err.print(line, highlight=False)
