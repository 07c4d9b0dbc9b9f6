"""`moorage export`: what serves, as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.adapters.files.desired import write_fleet, write_specs
from moorage.adapters.files.specs import FLEET_FILE
from moorage.adapters.ledger import Ledger
from moorage.adapters.system.settings import Settings
from moorage.cli.flows import guarded
from moorage.cli.output import dump, out
from moorage.common.failures import Cause, Failure
from moorage.operations.history.pinned import pinned_spec
from moorage.releases.states import SERVING

DEPLOYMENTS = Path("deployments")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write the files.")],
    pinned: Annotated[
        bool, typer.Option("--pinned", help="With the exact revisions that run.")
    ] = False,
    fleet: Annotated[
        Path | None, typer.Option("--fleet", help="Fleet file; else deployments/fleet.yaml.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that say something else.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write what serves as files: one for each model, as one would write it, and the fleet."""

    def action() -> list[Path]:
        rows = Ledger(Settings().ledger).releases.in_states(SERVING)
        unread = [row.id for row in rows if row.release is None]
        if unread:
            detail = f"another version of moorage wrote the record of {', '.join(unread)}"
            raise Failure(Cause.UNKNOWN_RELEASE, detail)
        releases = sorted((row.release for row in rows if row.release), key=lambda one: one.model)
        specs = [pinned_spec(one) if pinned else one.spec for one in releases]
        written = write_specs(folder, specs, overwrite=overwrite)
        hosts = fleet or DEPLOYMENTS / FLEET_FILE
        if fleet or hosts.exists():
            written.append(write_fleet(folder, hosts, overwrite=overwrite))
        return written

    written = guarded(action, as_json=as_json)
    if as_json:
        return dump({"files": [str(path) for path in written]})
    for path in written:
        out.print(str(path), markup=False, highlight=False, soft_wrap=True)
    if not written:
        out.print("Nothing serves, so there is nothing to export.")
    return None
