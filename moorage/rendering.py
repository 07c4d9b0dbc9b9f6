"""Records as Markdown: what a person reads in the Prefect UI."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.failures import Failure
from moorage.launch import ContainerSpec, LaunchPlan
from moorage.placement.placement import Placement
from moorage.release import Release
from moorage.units import human_bytes, human_seconds

LOG_LINES_SHOWN = 60


def release_markdown(release: Release) -> str:
    """The audit record of a release that runs."""
    parts = [
        f"# {release.id} serves `{release.model}`",
        _facts(release),
        _endpoints(release),
        _placement(release.placement),
        _plan(release.plan),
        _readiness(release),
        _steps(release),
    ]
    return "\n\n".join(part for part in parts if part)


def plan_markdown(release: Release) -> str:
    """What a deploy would run."""
    parts = [
        f"# Plan for `{release.model}` ({release.id})",
        _facts(release),
        _placement(release.placement),
        _plan(release.plan),
    ]
    return "\n\n".join(part for part in parts if part)


def failure_markdown(model: str, failure: Failure, release: str) -> str:
    """A failure: cause, suggestion, evidence, log tail."""
    parts = [
        f"# {failure.facts.summary}",
        f"| | |\n|---|---|\n| Model | `{model}` |\n| Release | `{release or '-'}` |\n"
        f"| Cause | `{failure.cause}` |",
        failure.detail,
        f"**What to do:** {failure.suggestion}",
    ]
    if failure.evidence:
        parts.append(f"**The line that tells:** `{failure.evidence}`")
    if failure.log_tail:
        tail = "\n".join(failure.log_tail.splitlines()[-LOG_LINES_SHOWN:])
        parts.append(f"## Last lines of the engine's log\n\n```text\n{tail}\n```")
    return "\n\n".join(parts)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; pipes and line breaks in cells are made harmless."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", "<br>")


def _facts(release: Release) -> str:
    image = release.image.pinned if release.image else "none (installed program)"
    rows: list[tuple[str, str]] = [
        ("Source", release.spec.source),
        ("Revision", release.revision),
        ("Spec", release.spec_digest),
        ("Image", image),
    ]
    if release.placement:
        rows.append(("Engine", f"{release.placement.engine}: {release.placement.engine_reason}"))
    if profile := release.profile:
        rows.append(("Architecture", ", ".join(profile.architectures)))
        rows.append(("Context", f"{profile.context} tokens: {profile.context_reason}"))
        rows.append(("Weights", human_bytes(profile.weight_bytes)))
    if release.replacement:
        rows.append(("Replaces", f"{release.replaced}: {release.replacement}"))
    if release.flow_run_id:
        rows.append(("Flow run", release.flow_run_id))
    return markdown_table(("", ""), [(name, f"`{value}`") for name, value in rows])


def _endpoints(release: Release) -> str:
    lines = [f"- `{workload.endpoint}/v1`" for workload in release.workloads]
    return "\n".join(["## Endpoints", "", *lines]) if lines else ""


def _placement(placement: Placement | None) -> str:
    if placement is None:
        return ""
    rows = [(v.host, v.refusal or "fits", v.detail) for v in placement.verdicts]
    text = f"## Placement\n\n{markdown_table(('host', 'outcome', 'why'), rows)}"
    return f"{text}\n\n{placement.stop_first}" if placement.stop_first else text


def _plan(plan: LaunchPlan | None) -> str:
    if plan is None:
        return ""
    return "\n\n".join(_container(spec) for spec in plan.containers)


def _container(spec: ContainerSpec) -> str:
    flags = [(f"`{' '.join(f.tokens)}`", f.origin, f.reason) for f in spec.command]
    variables = [
        (f"`{v.name}`", f"secret `{v.secret}`" if v.secret else f"`{v.value}`", v.origin, v.reason)
        for v in spec.environment
    ]
    return "\n\n".join(
        (
            f"## `{spec.name}` on {spec.host} ({spec.runtime})",
            markdown_table(("argument", "origin", "why"), flags),
            markdown_table(("variable", "value", "origin", "why"), variables),
        )
    )


def _readiness(release: Release) -> str:
    rows = [
        (result.workload, p.phase, human_seconds(p.seconds), p.attempts, p.detail)
        for result in release.readiness
        for p in result.probes
    ]
    header = ("workload", "phase", "after", "attempts", "answer")
    return f"## Readiness\n\n{markdown_table(header, rows)}" if rows else ""


def _steps(release: Release) -> str:
    rows = [(step.name, human_seconds(step.seconds), step.summary) for step in release.steps]
    return f"## Steps\n\n{markdown_table(('step', 'took', 'found'), rows)}" if rows else ""
