"""What there is to deploy on and with: hosts, engines, this machine's health."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.markup import escape

from moorage.adapters.hosts import survey_host
from moorage.adapters.ledger import Ledger
from moorage.cli.doctor import Check
from moorage.cli.output import dump, out, print_table
from moorage.engines.base import Engine
from moorage.fleet import Fleet
from moorage.images.catalogue import CATALOGUE
from moorage.placement.claims import Resource
from moorage.placement.snapshot import HostSnapshot
from moorage.units import human_bytes


def fleet(hosts: Fleet, ledger: Ledger, *, as_json: bool) -> None:
    """One line a host."""
    claims = ledger.claims.all()
    snapshots = [survey_host(host).with_claims(claims) for host in hosts.hosts]
    if as_json:
        return dump([host.model_dump(mode="json") for host in snapshots])
    return print_table(
        ("host", "runtimes", "accelerators", "RAM free / total", "RAM claimed", "ports", "engines"),
        [_host(host) for host in snapshots],
    )


def engines(known: Sequence[Engine], *, as_json: bool) -> None:
    """One line an engine."""
    rows: list[dict[str, Any]] = [
        {
            "engine": engine.name,
            "version": engine.default_version,
            "modes": sorted(engine.modes),
            "accelerators": [*sorted(engine.accelerator_types), *["cpu"] * engine.runs_on_cpu],
            "images": {
                row.accelerator_type: row.reference(engine.default_version)
                # The first row of a type is its newest runtime, so it comes last here and stays.
                for row in reversed(CATALOGUE)
                if row.engine == engine.name and row.has(engine.default_version)
            },
            "program": engine.program,
        }
        for engine in known
    ]
    if as_json:
        return dump(rows)
    return print_table(
        ("engine", "version", "serves", "runs on", "images", "program"),
        [
            (
                str(row["engine"]),
                str(row["version"]) or "yours",
                ", ".join(row["modes"]),
                ", ".join(row["accelerators"]),
                "\n".join(row["images"].values()) or "none: give `engine.image`",
                f"{row['program']} serve" if row["program"] else "none: give `engine.command`",
            )
            for row in rows
        ],
    )


def doctor(checks: Sequence[Check], *, as_json: bool) -> None:
    """One line a check."""
    if as_json:
        return dump([check.model_dump(mode="json") for check in checks])
    marks = {"ok": "[green]✓[/]", "absent": "[yellow]-[/]", "broken": "[red]✗[/]"}
    for check in checks:
        out.print(
            f"{marks[check.state]} {check.name}: {escape(check.found)}",
            highlight=False,
            soft_wrap=True,
        )
        if check.fix:
            out.print(f"    [dim]{escape(check.fix)}[/]", highlight=False, soft_wrap=True)
    return None


def _host(host: HostSnapshot) -> tuple[str, ...]:
    low, high = host.port_range
    accelerators = [
        f"{item.type}:{item.index} {item.name} {human_bytes(item.memory_free)} /"
        f" {human_bytes(item.memory_total)}, claimed"
        f" {human_bytes(host.claimed(Resource.ACCELERATOR, item.index))}"
        for item in host.accelerators
    ]
    return (
        host.name,
        ", ".join(host.runtimes) or host.unreachable,
        "\n".join(accelerators) or "none",
        f"{human_bytes(host.ram_free)} / {human_bytes(host.ram_total)}",
        human_bytes(host.claimed(Resource.RAM)),
        f"{low}-{high}",
        ", ".join(f"{item.engine} {item.version}".strip() for item in host.programs) or "none",
    )
