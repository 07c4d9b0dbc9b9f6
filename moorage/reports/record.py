"""Records as documents: what a person reads on the terminal and in the Prefect UI."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from moorage.common.failures import Failure
from moorage.common.units import human_bytes, human_seconds
from moorage.engines.isolation import Isolation
from moorage.engines.launch import Application, ContainerSpec
from moorage.models.assets import AssetRole, Pin
from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel
from moorage.readiness.protocol import Readiness
from moorage.releases.release import Release
from moorage.releases.states import Stay
from moorage.reports.document import Document, Section
from moorage.reports.history_report import timeline_section
from moorage.reports.memory_report import COMPARED_COLUMNS, comparison_rows
from moorage.reports.placement_report import placement_sections
from moorage.reports.readiness_report import corrections_section, facts_section, gate_section
from moorage.spec import ModelSpec

LOG_LINES_SHOWN = 60
FACTS = ("", "")
ISOLATION_WORDS = {
    "privileged": "PRIVILEGED",
    "user": "user",
    "groups": "groups",
    "ulimits": "limits",
    "ipc": "shared memory of",
    "shares_memory_of": "shared memory of container",
    "sees_processes_of": "sees the processes of container",
    "network": "network",
    "restart": "restarted by Docker",
    "capabilities": "capabilities",
    "nodes": "device nodes",
    "runtime": "container runtime",
}
"""What each part of a container's isolation is called."""

READINESS_COLUMNS = ("workload", "phase", "after", "attempts", "answer")


def release_document(
    release: Release, states: Sequence[Stay] = (), now: datetime | None = None
) -> Document:
    """The audit record of a release.

    Args:
        release: The record.
        states: The states that it went through; none = they are left out.
        now: End of the last state; None = its duration is left out.
    """
    outcome = "failed" if release.failure else f"serves {release.model}"
    sections = [_endpoints(release), _facts(release), corrections_section(release.corrections)]
    sections += [*_failure(release), *_plan_sections(release)]
    sections += [_loaded(release), _readiness(release)]
    sections += [gate_section(release.gate), facts_section(release.facts)]
    sections += [_memory(release), _steps(release), timeline_section(states, now)]
    sections += [_restarts(release)]
    return _document(f"{release.id} {outcome}", sections)


def plan_document(release: Release) -> Document:
    """What a deploy would run."""
    title = f"Plan for {release.model}: {release.id}"
    return _document(title, [_facts(release), *_plan_sections(release)])


def failure_document(model: str, failure: Failure, release: str) -> Document:
    """A failure: cause, suggestion, evidence, log tail."""
    rows = [("Model", model), ("Release", release or "none yet"), ("Cause", failure.cause)]
    if failure.evidence:
        rows.append(("The line that tells", failure.evidence))
    return _document(
        failure.facts.summary,
        [
            Section(header=FACTS, rows=tuple(rows)),
            Section(text=failure.detail),
            Section(title="What to do", text=failure.suggestion),
            _log(failure.log_tail),
        ],
    )


def profile_document(spec: ModelSpec, model: ResolvedModel, profile: ModelProfile) -> Document:
    """What a model is: its profile, the files that are used, and those that are not and why."""
    rows = [
        ("Source", spec.source),
        ("Revision", model.revision),
        *_profile(profile),
        ("Configuration read by", model.config_origin),
        ("Dtype", profile.dtype or "unknown"),
        ("Quantization", profile.quantization or "none"),
        ("Layers", str(profile.layers or "unknown")),
        ("Attention heads", f"{profile.attention_heads} (key/value: {profile.kv_heads})"),
        ("Vocabulary", str(profile.vocab_size or "unknown")),
    ]
    used = tuple((file.name, human_bytes(file.size)) for file in model.files)
    left = tuple((file.name, human_bytes(file.size), file.reason) for file in model.skipped)
    return _document(
        f"What {spec.name} is",
        [
            Section(header=FACTS, rows=tuple(rows)),
            Section(title="Files that are used", header=("file", "size"), rows=used),
            Section(title="Files that are left", header=("file", "size", "why"), rows=left),
        ],
    )


def readiness_document(release: str, results: tuple[Readiness, ...]) -> Document:
    """How a release proved that it answers: each phase of each workload."""
    section = Section(header=READINESS_COLUMNS, rows=_readiness_rows(results))
    return _document(f"How {release} proved that it answers", [section])


def _document(title: str, sections: list[Section]) -> Document:
    filled = (part for part in sections if part.text or part.rows or part.code)
    return Document(title=title, sections=tuple(filled))


def _facts(release: Release) -> Section:
    rows = [
        ("Source", release.spec.source),
        ("Revision", release.revision),
        ("Spec", release.spec_digest),
        *map(_companion, release.companions),
    ]
    if release.profile:
        rows += _profile(release.profile)
    if placement := release.placement:
        rows.append(("Engine", f"{placement.engine} ({placement.engine_reason})"))
        rows.append(("Image", _image(release)))
    if release.plan:
        rows.append(("Engine version", release.plan.engine_version or "unknown"))
    if release.replacement:
        rows.append(("Replaces", f"{release.replaced}: {release.replacement}"))
    if release.downtime_seconds is not None:
        rows.append(("Nobody served for", human_seconds(release.downtime_seconds)))
    if release.rolled_back_to:
        rows.append(("Runs again", release.rolled_back_to))
    if release.applied_from:
        rows.append(("Applied from", release.applied_from))
    if release.flow_run_id:
        rows.append(("Flow run", release.flow_run_id))
    if release.requester:
        rows.append(("Requested by", release.requester.summary))
    return Section(header=FACTS, rows=tuple(rows))


def _companion(pin: Pin) -> tuple[str, str]:
    name = "Draft model" if pin.role == AssetRole.DRAFT else f"Adapter {pin.name}"
    rank = f", rank {pin.rank}" if pin.rank else ""
    return name, f"{pin.source} at {pin.revision}{rank}"


def _profile(profile: ModelProfile) -> list[tuple[str, str]]:
    return [
        ("Architecture", ", ".join(profile.architectures) or profile.model_type or "unknown"),
        ("Mode", f"{profile.mode} ({profile.mode_origin})"),
        ("Context", f"{profile.context} tokens ({profile.context_reason})"),
        ("Weights", human_bytes(profile.weight_bytes)),
        *(("Warning", warning) for warning in profile.warnings),
    ]


def _image(release: Release) -> str:
    if release.plan and release.plan.on_cluster:
        return "none (Ray's own environment)"
    if release.image is None:
        return "none (an installed program)"
    image = release.image
    pinned = f" = {image.pinned}" if image.pinned != image.reference else ""
    return f"{image.reference}{pinned} ({image.reason})"


def _failure(release: Release) -> list[Section]:
    if release.failure is None:
        return []
    failure = release.failure
    return [
        Section(title=f"Failed: {failure.cause}", text=failure.detail),
        Section(title="What to do", text=failure.suggestion),
        _log(failure.log_tail),
    ]


def _log(tail: str) -> Section:
    lines = tail.splitlines()[-LOG_LINES_SHOWN:]
    return Section(title="Last lines of the engine's log" * bool(lines), code="\n".join(lines))


def _plan_sections(release: Release) -> list[Section]:
    containers = release.plan.containers if release.plan else ()
    parts = [part for spec in containers for part in _container(spec)]
    warnings = release.plan.warnings if release.plan else ()
    warned = Section(header=FACTS, rows=tuple(("Warning", warning) for warning in warnings))
    return [*placement_sections(release.placement), warned, *parts]


def _container(spec: ContainerSpec) -> tuple[Section, ...]:
    around = _application(spec.application) if spec.application else _surroundings(spec)
    return _command(spec), _environment(spec), around


def _command(spec: ContainerSpec) -> Section:
    return Section(
        title=f"{spec.name} on {spec.host} ({spec.runtime})",
        header=("argument", "given by", "origin", "why"),
        rows=tuple(
            (" ".join(f.tokens), "you" if f.written else "moorage", f.origin, f.reason)
            for f in spec.command
        ),
    )


def _environment(spec: ContainerSpec) -> Section:
    return Section(
        header=("variable", "value", "origin", "why"),
        rows=tuple(
            (v.name, f"secret {v.secret}" if v.secret else v.value, v.origin, v.reason)
            for v in spec.environment
        ),
    )


def _surroundings(spec: ContainerSpec) -> Section:
    verb = "publishes" if spec.publishes else "listens on"
    rows = [(verb, f"{spec.bind}:{spec.port}"), *_preparation(spec)]
    rows += [
        ("mounts", f"{m.source} at {m.target}{', read-only' * m.read_only}") for m in spec.mounts
    ]
    rows += _isolation(spec)
    rows += [("links", f"{link.name} to {link.target}") for link in spec.links]
    if spec.devices:
        rows.append(("accelerators", f"{spec.accelerator_type}: {', '.join(spec.devices)}"))
    if spec.shm_bytes:
        rows.append(("shared memory", human_bytes(spec.shm_bytes)))
    if spec.memory_bytes and spec.image:
        rows.append(("memory limit", human_bytes(spec.memory_bytes)))
    if spec.cores and spec.image:
        rows.append(("cores", str(spec.cores)))
    return Section(header=FACTS, rows=tuple(rows))


def _application(application: Application) -> Section:
    """What is put to the Ray cluster, word for word."""
    return Section(
        title=f"Application at {application.endpoint}",
        code=json.dumps(application.config, indent=2, ensure_ascii=False),
    )


def _preparation(spec: ContainerSpec) -> list[tuple[str, str]]:
    """What a script does before it becomes the engine."""
    if spec.preparation is None:
        return []
    rows = [("installs first", name) for name in spec.preparation.packages]
    if spec.preparation.without_cuda_compat:
        rows.append(("removes first", "/usr/local/cuda*/compat: libraries for newer drivers"))
    return rows


def _isolation(spec: ContainerSpec) -> list[tuple[str, str]]:
    """How the container is shut off, as far as it is not as always."""
    given, usual = spec.isolation, Isolation()
    rows = []
    for name, words in ISOLATION_WORDS.items():
        value = getattr(given, name)
        if value != getattr(usual, name):
            rows.append((words, _in_words(value)))
    return rows


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {'unlimited' if n < 0 else n}" for name, n in value.items())
    if isinstance(value, tuple):
        return ", ".join(value)
    return "yes" if value is True else str(value)


def _endpoints(release: Release) -> Section:
    rows = tuple((workload.name, f"{workload.endpoint}/v1") for workload in release.serving)
    return Section(title="Endpoints", header=("workload", "endpoint"), rows=rows)


def _readiness(release: Release) -> Section:
    rows = _readiness_rows(release.readiness)
    return Section(title="Readiness", header=READINESS_COLUMNS, rows=rows)


def _readiness_rows(results: tuple[Readiness, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (result.workload, p.phase, human_seconds(p.seconds), str(p.attempts), p.detail)
        for result in results
        for p in result.probes
    )


def _loaded(release: Release) -> Section:
    rows = tuple(
        (pin.name, pin.source, pin.revision, str(pin.rank or "not known"), workload.name)
        for workload in release.workloads
        for pin in workload.adapters
    )
    header = ("adapter", "source", "revision", "rank", "workload")
    return Section(title="Adapters loaded since it serves", header=header, rows=rows)


def _restarts(release: Release) -> Section:
    rows = tuple(
        (
            f"{one.at:%Y-%m-%d %H:%M:%S}",
            ", ".join(map(str, one.replicas)),
            one.reason,
            one.flow_run_id,
        )
        for one in release.restarts
    )
    header = ("at", "replicas", "why", "flow run")
    return Section(title="Started again (UTC)", header=header, rows=rows)


def _memory(release: Release) -> Section:
    rows = comparison_rows(release.measured)
    return Section(title="Memory: predicted against measured", header=COMPARED_COLUMNS, rows=rows)


def _steps(release: Release) -> Section:
    rows = tuple((step.name, human_seconds(step.seconds), step.summary) for step in release.steps)
    return Section(title="Steps", header=("step", "took", "found"), rows=rows)
