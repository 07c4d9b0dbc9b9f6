"""`moorage engines`: what is there on each host, and installing, updating and removing it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from moorage.adapters.engines.installations import Installations
from moorage.adapters.hosts.survey import survey_hosts
from moorage.adapters.system.settings import Settings
from moorage.cli.flows import FlowResult, call_flow
from moorage.cli.options import AsJson, Commands, FleetFile, fleet_of, open_ledger
from moorage.cli.output import dump, print_answer, print_table
from moorage.engines.base import Engine
from moorage.engines.registry import ENGINES
from moorage.engines.status import EngineState, EngineStatus, engine_status
from moorage.images.catalogue import CATALOGUE
from moorage.inventory.access import parse_access
from moorage.inventory.snapshot import HostSnapshot
from moorage.releases.release import ReleaseRow
from moorage.spec import EngineName, RuntimeName

EngineArgument = Annotated[EngineName, typer.Argument(help="Name of the engine.")]
Version = Annotated[str, typer.Option(help="Its version; else the tested one, or all of them.")]
HostName = Annotated[str, typer.Option("--host", help="Host of the fleet; else the only one.")]

commands = Commands(help="Show the engines; `install`, `update` and `remove` change them.")


@commands.callback(invoke_without_command=True)
def engines(context: typer.Context, fleet: FleetFile = None, as_json: AsJson = False) -> None:
    """Show the engines: what is there on each host, what they serve and load, and their images."""
    if context.invoked_subcommand is None:
        _show(fleet, as_json=as_json)


@commands.command()
def install(
    engine: EngineArgument,
    version: Version = "",
    host: HostName = "",
    runtime: Annotated[
        RuntimeName, typer.Option(help="An image (docker), or packages here (process).")
    ] = RuntimeName.AUTO,
    fleet: FleetFile = None,
    as_json: AsJson = False,
) -> None:
    """Have an engine on a host before a model needs it. Repeating it changes nothing."""
    outcome = call_flow(
        "install_engine", engine, version, host, runtime, fleet_of(fleet), as_json=as_json
    )
    _answer(engine, outcome, as_json=as_json)


@commands.command()
def update(
    engine: EngineArgument,
    host: HostName = "",
    fleet: FleetFile = None,
    as_json: AsJson = False,
) -> None:
    """Install the version that this release of moorage was tested with; the old one stays."""
    outcome = call_flow(
        "install_engine", engine, "", host, RuntimeName.AUTO, fleet_of(fleet), as_json=as_json
    )
    _answer(engine, outcome, as_json=as_json)


@commands.command()
def remove(
    engine: EngineArgument,
    version: Version = "",
    host: HostName = "",
    fleet: FleetFile = None,
    as_json: AsJson = False,
) -> None:
    """Remove an engine's images and packages from a host. Refused while a model uses it."""
    hosts = fleet_of(fleet)
    outcome = call_flow("remove_engine", engine, version, host, hosts, as_json=as_json)
    _answer(engine, outcome, as_json=as_json)


def _answer(engine: EngineName, outcome: FlowResult[str], *, as_json: bool) -> None:
    lines = outcome.result.splitlines() if outcome.result else []
    content = {"engine": engine, "outcome": outcome.name.lower(), "items": lines}
    text = "\n".join((outcome.message, *(f"  {line}" for line in lines)))
    print_answer({**content, "message": outcome.message}, text, as_json=as_json)


def _show(fleet: Path | None, *, as_json: bool) -> None:
    hosts = survey_hosts(fleet_of(fleet))
    releases = open_ledger().releases
    used = [row for each in releases.latest() if (row := releases.running(each.model))]
    rows = [_engine_row(engine, hosts, used) for engine in ENGINES.values()]
    if as_json:
        return dump(rows)
    return print_table(
        ("engine", "status", "serves", "loads", "runs on"),
        [
            (
                f"{row['engine']} {row['version']}".strip(),
                "\n".join(_host_lines(row)),
                ", ".join(row["modes"]),
                ", ".join(row["formats"]) or "anything",
                ", ".join(row["accelerators"]),
            )
            for row in rows
        ],
    )


def _host_lines(row: dict[str, Any]) -> list[str]:
    """The status on each host, and the models that an engine serves."""
    several = len(row["hosts"]) > 1
    lines = [f"{host}: {status}" if several else status for host, status in row["hosts"].items()]
    return [*lines, *[f"serves {', '.join(row['used_by'])}"] * bool(row["used_by"])]


def _status(engine: Engine, host: HostSnapshot) -> EngineStatus:
    """What an engine is on a host, and whether it is being installed on this machine now."""
    found = engine_status(engine, host)
    here = not parse_access(host.address).is_remote
    if here and found.state == EngineState.NOT_INSTALLED and _installations().is_busy(engine.name):
        return EngineStatus(state=EngineState.INSTALLING, details="packages on this machine")
    return found


def _disk(engine: Engine) -> dict[str, int]:
    """Bytes of the engine's installed packages on this machine, by version."""
    return {one.version: one.bytes for one in _installations().versions(engine.name)}


def _installations() -> Installations:
    return Installations(Settings().engines)


def _engine_row(
    engine: Engine, hosts: Sequence[HostSnapshot], used: Sequence[ReleaseRow]
) -> dict[str, Any]:
    placed = [(row.model, row.release.placement) for row in used if row.release]
    serving = (
        model for model, placement in placed if placement and placement.engine == engine.name
    )
    return {
        "engine": engine.name,
        "version": engine.default_version,
        "hosts": {host.name: str(_status(engine, host)) for host in hosts},
        "used_by": sorted(serving),
        "modes": sorted(engine.modes),
        "formats": sorted(engine.formats) if engine.predictable else [],
        "accelerators": [*sorted(engine.accelerator_types), *["cpu"] * engine.runs_on_cpu],
        "images": {
            row.accelerator_type: row.reference(engine.default_version)
            # The first row of a type is its newest runtime, so it comes last here and stays.
            for row in reversed(CATALOGUE)
            if row.engine == engine.name and row.has(engine.default_version)
        },
        "program": engine.program,
        "disk": _disk(engine),
    }
