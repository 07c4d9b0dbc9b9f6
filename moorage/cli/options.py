"""Options and arguments that several commands share."""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from moorage.adapters.files.specs import OTHER_FILES, load_fleet
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet

DEPLOYMENTS = Path("deployments")
SpecFile = Annotated[
    Path, typer.Argument(help="Spec of the model: a YAML file, or NAME for deployments/NAME.yaml.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
FleetFile = Annotated[
    Path | None, typer.Option("--fleet", help="Fleet file; else deployments/fleet.yaml.")
]
ModelName = Annotated[str, typer.Argument(help="Name of the model.")]


def fleet_of(file: Path | None) -> Fleet:
    """The fleet of a file, or of the one among the usual specs."""
    return load_fleet(file, DEPLOYMENTS / "any.yaml")


def existing(path: Path) -> Path:
    """The path as the user gave it; a bare model name means its file under deployments/."""
    if not _is_there(path) and path.suffix not in (".yaml", ".yml") and path.name == str(path):
        candidate = DEPLOYMENTS / f"{path}.yaml"
        if _is_there(candidate):
            return candidate
        raise _no_spec(path, candidate)
    return path


def _is_there(path: Path) -> bool:
    """Whether it is a file; not, where its name is too long or its folder is another user's."""
    with suppress(OSError):
        return path.is_file()
    return False


def _no_spec(path: Path, candidate: Path) -> Failure:
    names = sorted(
        one.stem for one in candidate.parent.glob("*.yaml") if one.name not in OTHER_FILES
    )
    near = get_close_matches(str(path), names, n=1)
    there = f"There are: {', '.join(names[:10])}." if names else "Name the file of a spec."
    return Failure(
        Cause.BAD_SPEC,
        f"there is no {candidate}, and no file {path}",
        suggestion=f"Did you mean '{near[0]}'?" if near else there,
    )
