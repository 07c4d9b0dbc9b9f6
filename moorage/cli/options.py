"""Options, arguments and look-ups that commands share."""

from __future__ import annotations

import sys
from dataclasses import fields
from difflib import get_close_matches
from os.path import isdir, isfile  # unlike Path's, False for a name that is too long or forbidden
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from moorage.adapters.ledger import Ledger
from moorage.adapters.system.settings import Settings
from moorage.cli.completion import models
from moorage.cli.output import confirm
from moorage.common.failures import Cause, Failure

if TYPE_CHECKING:
    from moorage.inventory.fleet import Fleet
    from moorage.releases.release import Release
    from moorage.releases.release_row import ReleaseRow

DEPLOYMENTS = Path("deployments")
ENDINGS = (".yaml", ".yml")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
FleetFile = Annotated[
    Path | None, typer.Option("--fleet", help="Fleet file; else deployments/fleet.yaml.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
AtOnce = Annotated[int, typer.Option(min=1, max=64, help="Models deployed at the same time.")]
ModelName = Annotated[str, typer.Argument(help="Name of the model.", autocompletion=models)]
Prompt = Annotated[
    str, typer.Argument(help="The prompt. Without one: standard input, or a conversation.")
]
ApiKey = Annotated[
    str,
    typer.Option(envvar="MOORAGE_API_KEY", help="API key. Default: that of `moorage key show`."),
]


def fleet_of(file: Path | None) -> Fleet:
    """The fleet of a file, else of the fleet file under deployments/."""
    from moorage.adapters.files.specs import load_fleet  # noqa: PLC0415  (others read no YAML)

    return load_fleet(file, DEPLOYMENTS / "any.yaml")


def require_consent(question: str, *, yes: bool, as_json: bool) -> None:
    """Return only if a person agrees at a terminal or has passed `--yes`.

    For commands that stop or replace several models or the ledger.

    Raises:
        Failure: `BAD_SETTING` without a terminal; `INTERRUPTED` if the answer is no, or none.
    """
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise Failure(
            Cause.BAD_SETTING,
            f"no terminal to confirm on: {question}",
            suggestion="Pass `--yes` to skip confirmation.",
        )
    if not confirm(question):
        advice = "Answer `y`, or pass `--yes`, to go on."
        raise Failure(Cause.INTERRUPTED, "nothing was started", suggestion=advice)


def existing(path: Path) -> Path:
    """The user's path, if it exists; a bare model name means its file under deployments/."""
    if path == Path("-"):
        return path
    if isdir(path):
        raise Failure(
            Cause.BAD_SPEC,
            f"{path} is a folder",
            suggestion="Name one of its files. `moorage deploy` and `moorage apply` take folders.",
        )
    if path.suffix in ENDINGS:
        return path
    if isfile(path):
        if _holds_weights(path):
            detail = f"{path} is a model, not a spec"
            raise Failure(Cause.BAD_SPEC, detail, suggestion=_advice(path))
        return path
    if path.name == str(path):
        return _named(path)
    if isdir(path.parent):
        near = get_close_matches(path.name, [one.name for one in path.parent.iterdir()], n=1)
        advice = f"Did you mean '{path.parent / near[0]}'?" if near else "Correct the path."
    else:
        advice = f"Pass the file of a spec. For a model of a hub, {_advice(path)}"
    raise Failure(Cause.BAD_SPEC, f"{path} does not exist", suggestion=advice)


def folder_of_specs(path: Path) -> Path:
    """The folder; raises `BAD_SPEC` when it contains no spec."""
    from moorage.adapters.files.specs import spec_files  # noqa: PLC0415  (as above)

    if spec_files(path):
        return path
    raise Failure(
        Cause.BAD_SPEC,
        f"{path} is a folder without a spec, which is a file NAME.yaml",
        suggestion=f"Name another folder. If it is a model, {_advice(path)}",
    )


def _holds_weights(path: Path) -> bool:
    from moorage.models.files import WEIGHT_FAMILIES  # noqa: PLC0415  (as above)

    return any(path.suffix in suffixes for suffixes in WEIGHT_FAMILIES.values())


def _named(name: Path) -> Path:
    """The spec file for a model's name; raises `BAD_SPEC` that suggests the nearest name."""
    from moorage.adapters.files.specs import spec_names  # noqa: PLC0415  (as above)

    candidate = DEPLOYMENTS / f"{name}.yaml"
    if isfile(candidate):
        return candidate
    names = spec_names(DEPLOYMENTS)
    near = get_close_matches(str(name), names, n=1)
    there = f"Known specs: {', '.join(names[:10])}." if names else _no_specs()
    raise Failure(
        Cause.BAD_SPEC,
        f"neither {candidate} nor {name} exists",
        suggestion=f"Did you mean '{near[0]}'?" if near else there,
    )


def _no_specs() -> str:
    here = f"There is no folder {DEPLOYMENTS} in {Path.cwd()}: go to where it is, or pass"
    return "Pass the file of a spec." if DEPLOYMENTS.is_dir() else f"{here} the file of a spec."


def _advice(model: Path) -> str:
    return f"`moorage init NAME {model}` writes its spec, and `moorage run {model}` tries it."


def open_ledger() -> Ledger:
    """The ledger of this machine's settings."""
    return Ledger(Settings().ledger)


def release_of(ledger: Ledger, text: str) -> ReleaseRow:
    """The release with that id or id prefix; of a model the running, sleeping, or newest one."""
    releases = ledger.releases
    named = releases.running(text) or releases.asleep(text) or releases.newest(text)
    if named:
        return named
    ids = releases.ids(text) if text else []
    if not ids:
        raise unknown_release(ledger, text, f"no model or release has the name '{text}'")
    from moorage.operations.history.rollback import one_of  # noqa: PLC0415  (a name needs none)

    return releases.get(one_of(text, ids))


def unknown_release(ledger: Ledger, name: str, detail: str) -> Failure:
    """The failure for an unknown name, which suggests the model with the nearest name."""
    known = ledger.releases.models()
    near = [one for one in get_close_matches(name, known, n=1) if one != name]
    hint = f"Did you mean '{near[0]}'? `moorage status` lists the models." if near else None
    return Failure(Cause.UNKNOWN_RELEASE, detail, suggestion=hint)


def unknown_model(ledger: Ledger, name: str) -> Failure:
    """The failure for an unknown model name, which suggests the nearest name."""
    return unknown_release(ledger, name, f"no model has the name '{name}'")


def require_name(name: str) -> None:
    """Refuse a text that cannot be the name of a model, an adapter, a key or a gateway."""
    from moorage.spec.patterns import Name  # noqa: PLC0415  (others take any name)

    TypeAdapter(Name).validate_python(name)


def require_model(name: str) -> None:
    """Raise `UNKNOWN_RELEASE` for a model name that no release has had."""
    require_name(name)
    ledger = open_ledger()
    if name not in ledger.releases.models():
        raise unknown_model(ledger, name)


def record_of(ledger: Ledger, text: str) -> Release:
    """The record of a release.

    Raises:
        Failure: `UNKNOWN_RELEASE`, also when this version cannot read its record.
    """
    row = release_of(ledger, text)
    if row.release is None:
        why = "another version wrote its record" if row.foreign_record else "it has no record"
        raise Failure(Cause.UNKNOWN_RELEASE, f"{row.id} is {row.state}; {why}")
    return row.release


def row_json(row: ReleaseRow) -> dict[str, Any]:
    """A release as data, without its record."""
    shown = [one.name for one in fields(row) if one.name not in ("release", "foreign_record")]
    return {name: to_jsonable_python(getattr(row, name)) for name in shown}
