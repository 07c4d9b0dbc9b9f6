"""What the commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import httpx
from rich.markup import escape
from rich.table import Table

from moorage.adapters.hosts import survey_host
from moorage.adapters.ledger import Ledger
from moorage.adapters.runtime import runtime_for
from moorage.adapters.settings import Settings
from moorage.cli.doctor import Check
from moorage.cli.flows import Outcome, out
from moorage.document import Document
from moorage.engines.base import Engine
from moorage.failures import Cause, Failure
from moorage.fleet import Fleet
from moorage.images.catalogue import CATALOGUE
from moorage.placement.claims import Resource
from moorage.placement.snapshot import HostSnapshot
from moorage.release import Release, ReleaseRow, ReleaseState
from moorage.rendering import plan_document, release_document
from moorage.units import human_bytes

ANSWER_SECONDS = 300


def deployed(outcome: Outcome[Release], *, as_json: bool) -> None:
    """What a deploy did, and where the release answers."""
    release = outcome.result
    if as_json:
        content = {"outcome": outcome.name.lower(), "message": outcome.message}
        return dump({**content, "release": release.model_dump(mode="json")})
    if outcome.name == "Unchanged":
        out.print(outcome.message, highlight=False, soft_wrap=True)
    else:
        out.print(
            f"[bold green]{release.id}[/] serves [bold]{release.model}[/]",
            highlight=False,
            soft_wrap=True,
        )
    for workload in release.workloads:
        out.print(f"  {workload.endpoint}/v1", highlight=False, soft_wrap=True)
    hint = f"`moorage show {release.id}` tells why; `moorage retire {release.model}` ends it"
    out.print(hint, style="dim", highlight=False, soft_wrap=True)
    return None


def record(release: Release, *, as_json: bool) -> None:
    """A whole record or plan."""
    if as_json:
        return dump(release.model_dump(mode="json"))
    planned = not (release.readiness or release.failure)
    return page(plan_document(release) if planned else release_document(release))


def page(document: Document) -> None:
    """A document on the terminal."""
    out.rule(f"[bold]{escape(document.title)}", align="left")
    for section in document.sections:
        if section.title:
            out.print(f"\n[bold]{escape(section.title)}")
        if section.text:
            out.print(section.text, markup=False, highlight=False, soft_wrap=True)
        if section.rows:
            _print(section.header, section.rows)
        if section.code:
            out.print(section.code, markup=False, style="dim", highlight=False, soft_wrap=True)


def retired(name: str, outcome: Outcome[str], *, as_json: bool) -> None:
    """What was stopped."""
    if as_json:
        return dump({"model": name, "release": outcome.result or None, "message": outcome.message})
    out.print(outcome.message, highlight=False, soft_wrap=True)
    return None


def observed(row: ReleaseRow, settings: Settings) -> str:
    """What a release's workloads are really doing."""
    if row.state != ReleaseState.RUNNING:
        return row.cause or row.state
    states = []
    for workload in row.workloads:
        runtime = runtime_for(workload.runtime, workload.address, settings)
        try:
            states.append(runtime.observe(workload).detail)
        except Failure as failure:
            states.append(str(failure))
    return "; ".join(states) or "nothing runs"


def status(rows: Sequence[tuple[ReleaseRow, str]], *, as_json: bool) -> None:
    """One line a model."""
    if as_json:
        return dump([{**_row_json(row), "observed": seen} for row, seen in rows])
    return _print(
        ("model", "release", "state", "endpoint", "observed"),
        [(row.model, row.id, row.state, _endpoints(row), seen) for row, seen in rows],
        empty="Nothing has been deployed yet: `moorage deploy deployments/tiny-llama.yaml`.",
    )


def history(rows: Sequence[ReleaseRow], *, as_json: bool) -> None:
    """One line a release."""
    if as_json:
        return dump([_row_json(row) for row in rows])
    return _print(
        ("release", "state", "created", "revision", "spec", "cause"),
        [
            (
                row.id,
                row.state,
                f"{row.created_at:%Y-%m-%d %H:%M:%S}",
                row.revision[:18],
                row.spec_digest,
                row.cause,
            )
            for row in rows
        ],
    )


def log_text(row: ReleaseRow, tail: int, settings: Settings) -> str:
    """The log of a release's workloads, or what was kept of it."""
    parts = [
        runtime_for(workload.runtime, workload.address, settings).logs(workload, tail)
        for workload in row.workloads
    ]
    if not row.workloads and row.release and row.release.failure:
        parts = ["\n".join(row.release.failure.log_tail.splitlines()[-tail:])]
    return "\n".join(part.rstrip("\n") for part in parts)


def new_lines(before: str, now: str) -> str:
    """What a longer log has beyond a shorter one."""
    last = before.splitlines()[-1:] or [""]
    _, found, rest = now.rpartition(last[0])
    return rest.lstrip("\n") + "\n" if found and rest.strip() else ""


def answer(row: ReleaseRow, prompt: str, max_tokens: int, api_key: str, *, as_json: bool) -> None:
    """Ask a model, and print what it says."""
    url = f"{row.workloads[0].endpoint}/v1/chat/completions"
    body = {
        "model": row.model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "stream": False,
    }
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        response = httpx.post(
            url, json=body, headers=headers, timeout=ANSWER_SECONDS, trust_env=False
        )
    except httpx.HTTPError as error:
        raise Failure(Cause.BAD_ANSWER, f"{url}: {error}") from error
    if response.status_code != 200:
        detail = f"{url}: HTTP {response.status_code}: {response.text[:300]}"
        raise Failure(Cause.BAD_ANSWER, detail)
    if as_json:
        return dump(response.json())
    sys.stdout.write(f"{response.json()['choices'][0]['message']['content']}\n")
    return None


def fleet(hosts: Fleet, ledger: Ledger, *, as_json: bool) -> None:
    """One line a host."""
    claims = ledger.claims.all()
    snapshots = [survey_host(host).with_claims(claims) for host in hosts.hosts]
    if as_json:
        return dump([host.model_dump(mode="json") for host in snapshots])
    return _print(
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
                row.accelerator_type: row.template.format(version=engine.default_version)
                for row in CATALOGUE
                if row.engine == engine.name
            },
            "program": engine.program,
        }
        for engine in known
    ]
    if as_json:
        return dump(rows)
    return _print(
        ("engine", "version", "serves", "runs on", "images", "program"),
        [
            (
                str(row["engine"]),
                str(row["version"]),
                ", ".join(row["modes"]),
                ", ".join(row["accelerators"]),
                "\n".join(row["images"].values()) or "none: give `engine.image`",
                f"{row['program']} serve",
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


def dump(content: Any) -> None:
    """Print JSON."""
    json.dump(content, sys.stdout, indent=2, default=str)
    sys.stdout.write("\n")


def _print(header: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "") -> None:
    if not rows and empty:
        out.print(empty)
        return
    table = Table(box=None, header_style="bold", show_header=any(header))
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    out.print(table)


def _row_json(row: ReleaseRow) -> dict[str, Any]:
    return row.model_dump(mode="json", exclude={"release"})


def _endpoints(row: ReleaseRow) -> str:
    return "\n".join(f"{workload.endpoint}/v1" for workload in row.workloads)


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
