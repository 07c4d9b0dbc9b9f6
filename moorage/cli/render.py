"""What the commands print about a release: documents, and how a flow run ended."""

from __future__ import annotations

from rich.markup import escape

from moorage.cli.flows import FlowResult
from moorage.cli.output import dump, out, print_table
from moorage.releases.release import Release
from moorage.reports.document import Document
from moorage.reports.record import plan_document, release_document


def show_deployment(outcome: FlowResult[Release], *, as_json: bool) -> None:
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
    for workload in release.serving:
        out.print(f"  {workload.endpoint}/v1", highlight=False, soft_wrap=True)
    for line in surprises(release):
        out.print(f"[yellow]  {escape(line)}", highlight=False, soft_wrap=True)
    hint = f"`moorage show {release.id}` tells why; `moorage retire {release.model}` ends it"
    out.print(hint, style="dim", highlight=False, soft_wrap=True)
    return None


def show_plan(outcome: FlowResult[Release], *, as_json: bool) -> None:
    """What a deploy would run, or that it would change nothing."""
    if outcome.name == "Unchanged" and not as_json:
        return out.print(f"{outcome.message}: a deploy would change nothing", soft_wrap=True)
    return show_record(outcome.result, as_json=as_json)


def show_record(release: Release, *, as_json: bool) -> None:
    """A whole record or plan."""
    if as_json:
        return dump(release.model_dump(mode="json"))
    planned = not (release.readiness or release.failure)
    return show_document(plan_document(release) if planned else release_document(release))


def show_document(document: Document) -> None:
    """A document on the terminal."""
    out.rule(f"[bold]{escape(document.title)}", align="left")
    for section in document.sections:
        if section.title:
            out.print(f"\n[bold]{escape(section.title)}")
        if section.text:
            out.print(section.text, markup=False, highlight=False, soft_wrap=True)
        if section.rows:
            print_table(section.header, section.rows)
        if section.code:
            out.print(section.code, markup=False, style="dim", highlight=False, soft_wrap=True)


def show_retirement(name: str, outcome: FlowResult[str], *, as_json: bool) -> None:
    """What was stopped."""
    if as_json:
        return dump({"model": name, "release": outcome.result or None, "message": outcome.message})
    out.print(outcome.message, highlight=False, soft_wrap=True)
    return None


def surprises(release: Release) -> tuple[str, ...]:
    """What a person should know about a release that serves: it is not quite what was planned."""
    corrected = (f"second try: {one.summary}" for one in release.corrections)
    return (*corrected, *(text for one in release.facts for text in one.surprises))
