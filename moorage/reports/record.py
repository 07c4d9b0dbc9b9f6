"""Records as documents, for the terminal and the Prefect UI."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from moorage.common.failures import Failure
from moorage.common.units import human_bytes, human_seconds
from moorage.engines.recovery import Correction
from moorage.models.pin import AssetRole, Pin
from moorage.models.profile import ModelProfile
from moorage.models.quantizations import FilesChoice
from moorage.models.source import ResolvedModel
from moorage.releases.release import FailureRecord, Release
from moorage.releases.states import SERVING, ReleaseState, Stay
from moorage.reports.document import Document, Section, facts
from moorage.reports.evidence import (
    UNKNOWN,
    facts_section,
    gate_section,
    load_section,
    readiness_section,
)
from moorage.reports.memory_report import COMPARED_COLUMNS, comparison_rows
from moorage.reports.next_steps import form_section, next_steps, python_client
from moorage.reports.plan_report import placement_sections, plan_sections
from moorage.reports.timeline import AT, timeline_section
from moorage.spec import ModelSpec

LOG_LINES_SHOWN = 60


def release_document(
    release: Release,
    states: Sequence[Stay] = (),
    now: datetime | None = None,
    forms: Mapping[str, str] = {},
) -> Document:
    """The audit record of a release, with its states where given.

    The last state lasts until `now`; None = its duration is left out. `forms`: addresses by label.
    """
    failure, asleep = release.failure, release.wake_failure
    serves = not states or states[-1].state in SERVING
    sections = (
        _endpoints(release),
        *((next_steps(release), python_client(release)) if serves else ()),
        form_section(forms),
        _facts(release),
        _quantizations(release.files),
        _corrections(release.corrections),
        *(_failure(f"Failed: {failure.cause}", failure) if failure else ()),
        *(_failure(f"It did not wake: {asleep.cause}", asleep) if asleep else ()),
        *placement_sections(release.placement),
        *plan_sections(release.plan),
        _loaded(release),
        readiness_section(release.readiness, "Readiness"),
        gate_section(release.gate),
        load_section(release),
        facts_section(release.facts),
        Section(
            title="Memory: predicted against measured",
            header=COMPARED_COLUMNS,
            rows=comparison_rows(release.measured),
        ),
        _steps(release),
        timeline_section(states, now),
        _restarts(release),
    )
    return Document(title=f"{release.id} {_outcome(release, states)}", sections=sections)


def plan_document(release: Release) -> Document:
    """The plan that a deploy would run."""
    planned = (*placement_sections(release.placement), *plan_sections(release.plan))
    title = f"Plan for {release.model}: {release.id}"
    known = (_facts(release), _quantizations(release.files))
    return Document(title=title, sections=(*known, *planned))


def failure_document(model: str, failure: Failure, release: str) -> Document:
    """A failure: cause, suggestion, evidence, log tail."""
    rows = [("Model", model), ("Release", release or "none yet"), ("Cause", str(failure.cause))]
    if failure.evidence:
        rows.append(("Evidence", failure.evidence))
    return Document(title=failure.cause.summary, sections=(facts(rows), *_failure("", failure)))


def profile_document(spec: ModelSpec, model: ResolvedModel, profile: ModelProfile) -> Document:
    """A model: its profile, the files that are used, and the files that are not, with reasons."""
    rows = (
        ("Source", spec.source),
        ("Revision", model.revision),
        *_profile(profile),
        ("Configuration read by", model.config_origin),
        ("Dtype", profile.dtype or UNKNOWN),
        ("Quantization", profile.quantization or "none"),
        ("Layers", str(profile.layers or UNKNOWN)),
        ("Attention heads", f"{profile.attention_heads} (key/value: {profile.kv_heads})"),
        ("Vocabulary", str(profile.vocab_size or UNKNOWN)),
    )
    used = tuple((file.name, human_bytes(file.size)) for file in model.files)
    left = tuple((file.name, human_bytes(file.size), file.reason) for file in model.skipped)
    return Document(
        title=f"Profile of {spec.name}",
        sections=(
            facts(rows),
            Section(title="Files used", header=("file", "size"), rows=used),
            Section(title="Files not used", header=("file", "size", "why"), rows=left),
        ),
    )


def _facts(release: Release) -> Section:
    rows = [
        ("Source", release.spec.source),
        ("Revision", release.revision),
        *([("Files", f"{choice.pattern} ({choice.reason})")] if (choice := release.files) else ()),
        ("Spec", release.spec_digest),
        *map(_companion, release.companions),
    ]
    if release.profile:
        rows += _profile(release.profile)
    if placement := release.placement:
        rows.append(("Engine", f"{placement.engine} ({placement.engine_reason})"))
        rows.append(("Image", _image(release)))
    if release.plan:
        rows.append(("Engine version", release.plan.engine_version or UNKNOWN))
        if known := release.plan.checked_against:
            rows.append(("Arguments", f"checked against those of {known}"))
    if release.replacement:
        rows.append(("Replaces", f"{release.replaced}: {release.replacement}"))
    if release.downtime_seconds is not None:
        rows.append(("Downtime", human_seconds(release.downtime_seconds)))
    optional = (
        ("Runs again", release.rolled_back_to),
        ("Applied from", release.applied_from),
        ("Flow run", release.flow_run_id),
        ("Requested by", release.requester.summary if release.requester else ""),
        ("Approval", release.approval),
    )
    return facts((*rows, *(row for row in optional if row[1])))


def _companion(pin: Pin) -> tuple[str, str]:
    name = "Draft model" if pin.role == AssetRole.DRAFT else f"Adapter {pin.name}"
    rank = f", rank {pin.rank}" if pin.rank else ""
    return name, f"{pin.source} at {pin.revision}{rank}"


def _profile(profile: ModelProfile) -> list[tuple[str, str]]:
    return [
        ("Architecture", ", ".join(profile.architectures) or profile.model_type or UNKNOWN),
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


def _quantizations(choice: FilesChoice | None) -> Section:
    """The verdict on each quantization; empty where there was no choice."""
    if choice is None:
        return Section()
    rows = tuple(
        (one.name, human_bytes(one.bytes), one.refusal or f"taken: {choice.reason}")
        for one in choice.verdicts
    )
    return Section(title="Quantizations", header=("file", "size", "outcome"), rows=rows)


def _failure(title: str, failure: Failure | FailureRecord) -> tuple[Section, ...]:
    log = "\n".join(failure.log_tail.splitlines()[-LOG_LINES_SHOWN:])
    return (
        Section(title=title, text=failure.detail),
        Section(title="What to do", text=failure.suggestion),
        Section(title="Last lines of the engine's log", code=log),
    )


def _corrections(corrections: Sequence[Correction]) -> Section:
    """The corrections of the second try: both values, and the engine's own words."""
    if not corrections:
        return Section()
    return Section(
        title="Second try",
        text="The first try failed. The second one used the value that the engine named.",
        header=("option", "first try", "second try", "came from", "why"),
        rows=tuple(map(_correction_row, corrections)),
    )


def _correction_row(one: Correction) -> tuple[str, ...]:
    why = f"{one.cause}: {one.reason}\n{one.evidence}".rstrip()
    return one.option, one.before, one.value, one.stated or "derived", why


def _outcome(release: Release, states: Sequence[Stay]) -> str:
    """What became of a release; without its states it has just been released, or has failed."""
    now = states[-1].state if states else ReleaseState.RUNNING
    if release.failure or now == ReleaseState.ERROR:
        return "failed"
    return f"serves {release.model}" if now == ReleaseState.RUNNING else f"is {now}"


def _endpoints(release: Release) -> Section:
    rows = tuple((workload.name, workload.url) for workload in release.serving)
    return Section(title="Endpoints", header=("workload", "endpoint"), rows=rows)


def _loaded(release: Release) -> Section:
    rows = tuple(
        (pin.name, pin.source, pin.revision, str(pin.rank or "not known"), workload.name)
        for workload in release.workloads
        for pin in workload.adapters
    )
    header = ("adapter", "source", "revision", "rank", "workload")
    return Section(title="Adapters loaded later", header=header, rows=rows)


def _restarts(release: Release) -> Section:
    rows = tuple(
        (f"{one.at:{AT}}", ", ".join(map(str, one.replicas)), one.reason, one.flow_run_id)
        for one in release.restarts
    )
    header = ("at", "replicas", "why", "flow run")
    return Section(title="Restarts (UTC)", header=header, rows=rows)


def _steps(release: Release) -> Section:
    rows = tuple((step.name, human_seconds(step.seconds), step.summary) for step in release.steps)
    bars = tuple((step.name, step.seconds) for step in release.steps)
    header = ("step", "took", "found")
    return Section(title="Steps", header=header, rows=rows, bars=bars, unit="seconds")
