"""`moorage policy`: what the site allows, and whether a spec keeps to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from moorage.adapters.files.policy_file import load_policy, load_site_fleet, request_of
from moorage.adapters.files.specs import load_fleet, load_spec
from moorage.adapters.system.settings import Settings
from moorage.cli.flows import exit_on_failure
from moorage.cli.options import AsJson, existing
from moorage.cli.output import dump, out, print_table
from moorage.policy.judge import parameter_violations, violations
from moorage.policy.request import Channel, PolicyRefused, Submission, Violation
from moorage.policy.rules import EffectivePolicy

app = typer.Typer(no_args_is_help=True, help="Show what the site allows, and check specs with it.")


@app.command()
def check(
    spec: Annotated[Path, typer.Argument(help="Spec of the model: a file, or NAME.")],
    channel: Annotated[
        Channel, typer.Option("--as", help="Who would bring it: this command line, or the API.")
    ] = Channel.API,
    fleet: Annotated[
        Path | None, typer.Option("--fleet", help="Fleet file that would be brought.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what of a spec the policy does not allow. Nothing is started."""

    def action() -> str:
        policy = load_policy(Settings())
        if found := _judged(existing(spec), fleet, channel, policy):
            raise PolicyRefused(found)
        return policy.source

    source = exit_on_failure(action, as_json=as_json)
    if as_json:
        dump({"allowed": True, "as": channel, "policy": source})
    else:
        out.print(f"{source} allows it through the {channel.upper()}", highlight=False)


@app.command()
def show(as_json: AsJson = False) -> None:
    """Show every rule, its value, and whether the policy file or the default says so."""
    policy = exit_on_failure(lambda: load_policy(Settings()), as_json=as_json)
    rows = _rows(policy)
    if as_json:
        rules = {rule: {"value": value, "origin": origin} for rule, value, origin in rows}
        dump({"file": policy.file, "rules": rules})
        return
    out.print(f"policy: {policy.source}", highlight=False)
    print_table(("rule", "value", "from"), [(rule, _text(value), by) for rule, value, by in rows])


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
    """Each rule by its path, its value, and what says so."""
    top = policy.policy
    rows = [_row("fleet", top, "fleet", policy.file)]
    for section in Channel:
        rules = top.rules(section)
        rows += [
            _row(f"{section}.{name}", rules, name, policy.file) for name in type(rules).model_fields
        ]
    return rows


def _row(path: str, owner: BaseModel, name: str, file: str) -> tuple[str, Any, str]:
    value = owner.model_dump(mode="json")[name]
    return path, value, file if name in owner.model_fields_set else "default"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "-" if value in (None, "", {}) else str(value)
