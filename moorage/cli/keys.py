"""`moorage key`: API keys of the gateway's callers, and the key of an engine."""

import re
import sys
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
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.gateway.table import ApiKey

PREFIX = "sk-moorage-"
KEY_BYTES = 32
GATEWAYS = "`moorage gateway status` shows whether it follows."
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
    # Before the wait for gateways, which may be interrupted: nobody can read the secret later.
    content = {**key.model_dump(mode="json", exclude={"digest"}), "key": secret}
    print_answer(content, secret, as_json=as_json)
    sys.stdout.flush()
    try:
        _lagging_gateways(ledger)
    except KeyboardInterrupt:
        err.print("the gateways may not accept the key yet", highlight=False)
        raise typer.Exit(ExitCode.CANCELLED) from None


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
    """Revoke an API key: requests with it are refused from now on.

    Exits with 8 when a gateway does not follow: until it does, it accepts the key.
    """
    ledger = open_ledger()
    if not ledger.api_keys.revoke(name):
        raise Failure(
            Cause.BAD_SETTING,
            f"there is no key '{name}'",
            suggestion="`moorage key list` lists them.",
        )
    try:
        lagging = _lagging_gateways(ledger)
    except KeyboardInterrupt:
        detail = f"key {name} is revoked, but a gateway may still accept it"
        raise Failure(Cause.INTERRUPTED, detail, suggestion=GATEWAYS) from None
    content = {"key": name, "revoked": True, "lagging": lagging}
    text = f"key {name} is revoked"
    if lagging:
        text += f", but a gateway that does not follow still accepts it. {GATEWAYS}"
    print_answer(content, text, as_json=as_json)
    if lagging:
        raise typer.Exit(ExitCode.MACHINE)


def _duration(text: str) -> timedelta:
    found = re.fullmatch(r"([1-9]\d{0,5})([mhd])", text)
    if not found:
        raise Failure(
            Cause.BAD_SETTING,
            f"'{text}' is no duration",
            suggestion="Write a number and a unit: 90m, 12h or 30d.",
        )
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def _lagging_gateways(ledger: Ledger) -> list[str]:
    """Wait for the gateways; prints and returns a line about each that does not follow.

    A failure of the wait is one such line, since the change is already made.
    """
    try:
        lines = await_gateways(ledger, Settings().root)
    except Failure as failure:
        lines = [f"the gateways may not follow: {failure}"]
    for line in lines:
        err.print(line, markup=False, highlight=False)
    return lines
