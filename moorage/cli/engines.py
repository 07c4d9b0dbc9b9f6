"""`moorage engines`: show, install, update and remove the engines of each host."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from moorage.adapters.engines.disk_usage import measure_disks
from moorage.adapters.engines.installations import Installations
from moorage.adapters.hosts.survey import survey_hosts
from moorage.adapters.system.settings import Settings
from moorage.cli.commands import Commands
from moorage.cli.flows import call_flow
from moorage.cli.options import AsJson, FleetFile, fleet_of, open_ledger
from moorage.cli.output import dump, print_answer, print_table, show_document
from moorage.engines.base import Engine
from moorage.engines.installed import EngineState, EngineStatus, engine_status
from moorage.engines.registry import ENGINES
from moorage.inventory.access import parse_access
from moorage.inventory.snapshot import HostSnapshot
from moorage.operations.engine_installation import no_engine
from moorage.releases.states import KEPT
from moorage.reports.engine_report import (
    ENGINE_COLUMNS,
    EngineReport,
    engine_document,
    engine_report,
    engine_rows,
)
from moorage.spec import EngineName, RuntimeName

EngineArgument = Annotated[EngineName, typer.Argument(help="Name of the engine.")]
Version = Annotated[str, typer.Option(help="Its version; else the tested one, or all of them.")]
HostName = Annotated[str, typer.Option("--host", help="Host of the fleet; else the only one.")]
Runtime = Annotated[
    RuntimeName, typer.Option(help="An image (docker), or packages here (process).")
]

commands = Commands(help="Show the engines; `install`, `update` and `remove` change them.")


@commands.callback(invoke_without_command=True)
def engines(context: typer.Context, fleet: FleetFile = None, as_json: AsJson = False) -> None:
    """Show the engines: what is there on each host, what it takes of the disk, and who uses it."""
    if context.invoked_subcommand is not None:
        return
    reports = _report(fleet, ENGINES.values())
    if as_json:
        dump(reports)
    else:
        print_table(ENGINE_COLUMNS, engine_rows(reports))


@commands.command()
def show(engine: EngineArgument, fleet: FleetFile = None, as_json: AsJson = False) -> None:
    """Show all of one engine: what it serves and loads, its versions, and what they take."""
    if engine not in ENGINES:
        raise no_engine(engine)
    (report,) = _report(fleet, [ENGINES[engine]])
    if as_json:
        dump(report)
    else:
        show_document(engine_document(report))


@commands.command()
def install(
    engine: EngineArgument,
    version: Version = "",
    host: HostName = "",
    runtime: Runtime = RuntimeName.AUTO,
    fleet: FleetFile = None,
    as_json: AsJson = False,
) -> None:
    """Install an engine on a host before a model needs it. Repeating it changes nothing."""
    _change("install_engine", engine, version, host, runtime, fleet_of(fleet), as_json=as_json)


@commands.command()
def update(
    engine: EngineArgument,
    host: HostName = "",
    runtime: Runtime = RuntimeName.AUTO,
    fleet: FleetFile = None,
    as_json: AsJson = False,
) -> None:
    """Install the version that this release of moorage was tested with; the old one stays.

    Packages that `install` made on this machine stay packages, unless a host or a runtime is named.
    """
    has_packages = Installations(Settings().engines).current(engine) is not None
    if has_packages and not host and runtime == RuntimeName.AUTO:
        runtime = RuntimeName.PROCESS
    _change("install_engine", engine, "", host, runtime, fleet_of(fleet), as_json=as_json)


@commands.command()
def remove(
    engine: EngineArgument,
    version: Version = "",
    host: HostName = "",
    fleet: FleetFile = None,
    as_json: AsJson = False,
) -> None:
    """Remove an engine's images and packages from a host. Refused while a model uses it."""
    _change("remove_engine", engine, version, host, fleet_of(fleet), as_json=as_json)


def _change(flow: str, engine: EngineName, *parameters: Any, as_json: bool) -> None:
    outcome = call_flow(flow, engine, *parameters, as_json=as_json)
    lines = outcome.result.splitlines() if outcome.result else []
    content = {"engine": engine, "outcome": outcome.name.lower(), "items": lines}
    text = "\n".join((outcome.message, *(f"  {line}" for line in lines)))
    print_answer({**content, "message": outcome.message}, text, as_json=as_json)


def _report(fleet: Path | None, engines: Iterable[Engine]) -> list[EngineReport]:
    """Installations of engines on the hosts, their disk usage, and the releases that use them."""
    wanted, settings = fleet_of(fleet), Settings()
    given = {"engines": wanted.engines, "registries": wanted.registries}
    hosts = [host.model_copy(update=given) for host in survey_hosts(wanted)]
    disks = measure_disks(wanted, hosts, settings)
    rows = open_ledger().releases.in_states(KEPT)
    installed = Installations(settings.engines)
    return [
        engine_report(
            engine,
            hosts,
            {host.name: str(_status(engine, host, installed)) for host in hosts},
            disks,
            rows,
        )
        for engine in engines
    ]


def _status(engine: Engine, host: HostSnapshot, installed: Installations) -> EngineStatus:
    """The status of an engine on a host, including a running installation on this machine."""
    found = engine_status(engine, host)
    here = not parse_access(host.address).is_remote
    if here and found.state == EngineState.NOT_INSTALLED and installed.is_busy(engine.name):
        return EngineStatus(state=EngineState.INSTALLING, details="packages on this machine")
    return found
