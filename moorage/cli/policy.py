"""`moorage policy`: show the site's rules, and check a spec with them."""

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from moorage.adapters.files.policy_file import load_policy, load_site_fleet, request_of
from moorage.adapters.files.specs import load_fleet, load_spec
from moorage.adapters.system.settings import Settings
from moorage.cli.commands import Commands
from moorage.cli.options import AsJson, existing
from moorage.cli.output import dump, print_table, say
from moorage.policy.judge import parameter_violations, violations
from moorage.policy.request import Channel, PolicyRefused, Submission, Violation
from moorage.policy.rules import EffectivePolicy

app = Commands(no_args_is_help=True, help="Show what the site allows, and check specs with it.")


@app.command()
def check(
    spec: Annotated[Path, typer.Argument(help="Spec of the model: a file, or NAME.")],
    channel: Annotated[
        Channel, typer.Option("--as", help="Channel of the spec: cli or api.")
    ] = Channel.API,
    fleet: Annotated[
        Path | None, typer.Option("--fleet", help="Fleet file to submit with the spec.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a spec with the policy. Nothing is started."""
    policy = load_policy(Settings())
    if found := _judged(existing(spec), fleet, channel, policy):
        raise PolicyRefused(found)
    if as_json:
        return dump({"allowed": True, "as": channel, "policy": policy.source})
    return say(f"{policy.source} allows it through the {channel.upper()}")


@app.command()
def show(as_json: AsJson = False) -> None:
    """Show every rule, its value, and its origin: the policy file or the default."""
    policy = load_policy(Settings())
    rows = _rows(policy)
    if as_json:
        rules = {rule: {"value": value, "origin": origin} for rule, value, origin in rows}
        return dump({"file": policy.file, "rules": rules})
    say(f"policy: {policy.source}")
    shown = [(rule, _text(value), origin) for rule, value, origin in rows]
    return print_table(("rule", "value", "from"), shown)


def _judged(
    path: Path, fleet: Path | None, channel: Channel, policy: EffectivePolicy
) -> tuple[Violation, ...]:
    spec, settings = load_spec(path), Settings()
    own = load_site_fleet(policy, settings)
    brought = load_fleet(fleet, None if channel == Channel.API else path)
    found: tuple[Violation, ...] = ()
    if fleet and brought != own and not policy.policy.rules(channel).own_fleet:
        found = parameter_violations(policy, channel, own_fleet=str(fleet))
    hosts = brought if fleet or channel == Channel.CLI else own
    request = request_of(spec, hosts, Submission(channel=channel), policy, settings)
    return (*found, *violations(policy, request))


def _rows(policy: EffectivePolicy) -> list[tuple[str, Any, str]]:
    rules: list[tuple[str, BaseModel, str]] = [("fleet", policy.policy, "fleet")]
    for channel in Channel:
        owner = policy.policy.rules(channel)
        rules += [(f"{channel}.{name}", owner, name) for name in type(owner).model_fields]
    return [
        (
            path,
            owner.model_dump(mode="json")[name],
            policy.file if name in owner.model_fields_set else "default",
        )
        for path, owner, name in rules
    ]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "-" if value in (None, "", {}) else str(value)
