"""`moorage fleet`: show and check hosts and Ray clusters."""

from itertools import groupby
from typing import Any

import typer
from rich.markup import escape

from moorage.adapters.hosts.fleet_check import check_fleet
from moorage.adapters.hosts.survey import HOST_SECONDS, fleet_snapshot, survey_hosts
from moorage.adapters.ray.cluster_survey import check_clusters, survey_clusters
from moorage.adapters.system.settings import Settings
from moorage.cli.commands import Commands
from moorage.cli.counting import counting
from moorage.cli.options import AsJson, FleetFile, fleet_of, open_ledger
from moorage.cli.output import dump, err, out, print_table, say
from moorage.common.failures import ExitCode, Failure
from moorage.common.units import counted, human_bytes
from moorage.inventory.access import parse_access
from moorage.inventory.checks import Check
from moorage.inventory.claims import Resource
from moorage.inventory.clusters import ClusterSnapshot
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import Accelerator, HostSnapshot

MARKS = {"ok": "[green]✓[/]", "absent": "[yellow]-[/]", "broken": "[red]✗[/]"}

HEADER = ("host", "address", "Docker", "accelerators", "free RAM", "claims", "troubles")

ELSEWHERE = {"catalogue", "engines", "registries"}
"""Fields of a snapshot that do not describe its host."""

commands = Commands(help="Show the hosts; `moorage fleet check` tests them.")


@commands.callback(invoke_without_command=True)
def fleet(context: typer.Context, file: FleetFile = None, as_json: AsJson = False) -> None:
    """Show hosts and Ray clusters: accelerators, RAM, claims, problems."""
    if context.invoked_subcommand is None:
        _show(fleet_of(file), as_json=as_json)


@commands.command()
def check(file: FleetFile = None, as_json: AsJson = False) -> None:
    """Test every host and Ray cluster: login, Docker, accelerators, disk, clock, ports."""
    hosts = fleet_of(file)
    with counting(err, "checking hosts", len(hosts.hosts) + len(hosts.clusters)) as done:
        checked = (*check_fleet(hosts, done), *check_clusters(hosts, done))
    if as_json:
        dump([{**host.model_dump(mode="json"), "well": host.well} for host in checked])
    for host in () if as_json else checked:
        out.print(f"[bold]{escape(host.host)}[/] ({escape(host.address)})", highlight=False)
        for item in host.checks:
            print_check(item)
    if not all(host.well for host in checked):
        raise typer.Exit(ExitCode.MACHINE)


def print_check(check: Check) -> None:
    """Print a check, and how to fix it."""
    say(f"{MARKS[check.state]} {check.name}: {escape(check.found)}", markup=True)
    if check.fix:
        say(f"    {check.fix}", style="dim")


def _show(hosts: Fleet, *, as_json: bool) -> None:
    claims = open_ledger().claims.all()
    with counting(err, "surveying hosts", len(hosts.hosts) + len(hosts.clusters)) as done:
        seen = survey_hosts(hosts, HOST_SECONDS, done)
        clusters = survey_clusters(hosts, HOST_SECONDS, done)
    snapshot = fleet_snapshot(seen, hosts, claims, Settings().models)
    if as_json:
        cluster_rows = [_cluster_data(name, found, hosts) for name, found in clusters.items()]
        return dump([*(_data(host) for host in snapshot.hosts), *cluster_rows])
    rows = [_row(host) for host in snapshot.hosts]
    rows += [_cluster_row(name, found, hosts) for name, found in clusters.items()]
    # Leave out the last column if it is `none` for every host, to make room for the others.
    width = len(HEADER) - all(row[-1] == "none" for row in rows)
    return print_table(HEADER[:width], [row[:width] for row in rows])


def _data(host: HostSnapshot) -> dict[str, Any]:
    """A host as data; its address without names of secrets and files."""
    data = host.model_dump(mode="json", exclude=ELSEWHERE)
    ordered = {"images": sorted(host.images), "models": sorted(host.models)}
    address = parse_access(host.address).address
    return {"kind": "host", **data, **ordered, "address": address}


def _cluster_data(name: str, found: ClusterSnapshot | Exception, fleet: Fleet) -> dict[str, Any]:
    reason = _why(found) if isinstance(found, Exception) else ""
    known = {"name": name} if isinstance(found, Exception) else found.model_dump(mode="json")
    address = fleet.clusters[name].dashboard
    return {"kind": "cluster", **known, "unreachable": reason, "address": address}


def _row(host: HostSnapshot) -> tuple[str, ...]:
    address = parse_access(host.address).address
    if host.unreachable:
        return (host.name, address, "unreachable", "", "", _claims(host), host.unreachable)
    return (
        host.name,
        address,
        host.docker or "none: processes",
        "\n".join(_accelerators(host)) or "none",
        f"{human_bytes(host.ram_free)} of {human_bytes(host.ram_total)}",
        _claims(host) or "none",
        "\n".join(host.troubles) or "none",
    )


def _cluster_row(name: str, found: ClusterSnapshot | Exception, fleet: Fleet) -> tuple[str, ...]:
    """A row of a Ray cluster, with its applications instead of claims: Ray tracks its resources."""
    address = fleet.clusters[name].dashboard
    if isinstance(found, Exception):
        return (name, address, "unreachable", "", "", "", _why(found))
    free = "?" if found.accelerators_free is None else found.accelerators_free
    gpus = f"{free} of {found.accelerators} free" if found.accelerators else "none"
    served = counted(len(found.applications), "application")
    return (name, address, f"none: Ray {found.version}", gpus, "", served, "none")


def _why(error: Exception) -> str:
    if isinstance(error, Failure):
        return error.detail
    return str(error) or f"no answer within {HOST_SECONDS:g} s"


def _accelerators(host: HostSnapshot) -> list[str]:
    """Lines about accelerators; equal accelerators share theirs."""
    alike: dict[tuple[str, str, str], list[Accelerator]] = {}
    for item in host.accelerators:
        memory = f"{human_bytes(item.memory_free)} of {human_bytes(item.memory_total)} free"
        alike.setdefault((item.type, item.name, memory), []).append(item)
    lines = []
    for (kind, name, memory), items in alike.items():
        lines.append(f"{kind}:{_ranges([item.index for item in items])} {name}".rstrip())
        lines.append(f"  {memory}{' on each' if len(items) > 1 else ''}")
    lines += [f"NVLink {_ranges(list(group))}" for group in host.links]
    return [*lines, "uses the host's RAM"] if host.unified_memory else lines


def _claims(host: HostSnapshot) -> str:
    lines = []
    for release in dict.fromkeys(claim.release for claim in host.claims):
        own = [claim for claim in host.claims if claim.release == release]
        memory = [claim for claim in own if claim.resource == Resource.ACCELERATOR]
        ram = sum(claim.amount for claim in own if claim.resource == Resource.RAM)
        parts = [f"{human_bytes(sum(claim.amount for claim in memory))} on {len(memory)}"]
        held = parts * bool(memory) + [f"{human_bytes(ram)} of RAM"] * bool(ram)
        held += [f"port {claim.index}" for claim in own if claim.resource == Resource.PORT]
        lines.append(f"{release}: {', '.join(held)}")
    return "\n".join(lines)


def _ranges(numbers: list[int]) -> str:
    """`0-3,6` for 0, 1, 2, 3 and 6."""
    runs = groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0])
    parts = ([number for _, number in run] for _, run in runs)
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts)
