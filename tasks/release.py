"""Step release: the audit record of a release, from its begin until it serves or has failed."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from moorage.adapters.system.threads import (
    in_thread,
    run_shielded,
    run_uninterrupted,
    threaded,
    was_interrupted,
)
from moorage.common.failures import Cause, Failure
from moorage.common.units import human_seconds
from moorage.engines.launch import split_off
from moorage.operations.history.changes import spec_changes
from moorage.operations.schedules import schedules_of
from moorage.placement.placement import Analyzed, Placed
from moorage.placement.propose import NoFit
from moorage.releases.release import FailureRecord, Release
from moorage.releases.release_row import ReleaseRow, claims_of
from moorage.releases.states import ReleaseState, outage, stays
from moorage.reports.next_steps import release_forms
from moorage.reports.record import failure_document, plan_document, release_document
from moorage.spec import ModelSpec, slug
from tasks.artifacts import if_possible, show_markdown
from tasks.context import ledger, routes
from tasks.flow_task import flow_task
from tasks.journal import Journal, failure_of, step, tell
from tasks.measure import measure, read_facts, record_measurements
from tasks.schedules import has_schedule, set_schedules
from tasks.smoke_test import is_canary


@flow_task("release", "release {release.id}")
async def publish(release: Release) -> Release:
    """Write the record and route requests to the release, in one step; returns the record."""
    with step("release") as note:
        release = await run_uninterrupted(routes().switch, release)
        line = await in_thread(ledger().releases.transitions, release.id)
        timeline = stays(release.created_at, release.flow_run_id, line)
        key, text = f"release-{slug(release.model)}", f"{release.id} serves {release.model}"
        forms = await if_possible(partial(_form_links, release), key)
        page = release_document(release, timeline, forms=forms or {})
        await show_markdown(key, page.markdown(), text)
        note.say(text)
        return release


async def _form_links(release: Release) -> dict[str, str]:
    from moorage.adapters.prefect.forms import form_links  # noqa: PLC0415  (imports Prefect)

    return await form_links(release_forms(release))


async def publish_failure(model: str, failure: Failure, release: str) -> None:
    """Show a failure with its cause, suggestion and log tail as an artifact of the run."""
    page = failure_document(model, failure, release).markdown()
    await show_markdown(f"failure-{slug(model)}", page, str(failure)[:500])


async def publish_plan(release: Release, title: str) -> None:
    """Show the plan of a deploy as an artifact."""
    await show_markdown(f"plan-{slug(release.spec.name)}", plan_document(release).markdown(), title)


@threaded
def approval_page(spec: ModelSpec, release: Release, *, unchanged: bool) -> str:
    """The change that a person is asked to approve, as Markdown: spec changes and release plan.

    Where nothing would change (`unchanged`), `release` is the one that already serves.
    """
    if unchanged:
        return f"{release.id} serves all this already and would be replaced by the same."
    row = ledger().releases.running(spec.name)
    changed = spec_changes(row.release.spec, spec) if row and row.release else ()
    lines = [f"- {one.what}: {one.before or '-'} -> {one.after or '-'}" for one in changed]
    if row:
        lines.insert(0, f"It would replace {row.id}, which serves {row.revision[:12]}.\n")
    return "\n".join([*lines, "", plan_document(release).markdown()])


async def revise(old: ReleaseRow, spec: ModelSpec) -> None:
    """Write a spec into the record of a release that already serves it."""
    await in_thread(ledger().releases.revise, old, spec)
    await set_schedule(spec, old)


async def set_schedule(spec: ModelSpec, old: ReleaseRow | None) -> None:
    """Set, or remove, the model's schedules in Prefect as its spec says."""
    if spec.schedule or has_schedule(old):
        await set_schedules([spec.name], schedules_of(spec.name, spec.schedule))


def announcement(release: Release) -> str:
    """A line with a release's model, endpoints, corrections and seconds without service."""
    endpoints = ", ".join(workload.url for workload in release.serving)
    corrected = "".join(f"; second try: {one.summary}" for one in release.corrections)
    lost = release.downtime_seconds
    gap = f"; {human_seconds(lost)} without service" if lost else ""
    return f"{release.id} serves {release.model} at {endpoints}{corrected}{gap}"


def replacement_summary(draft: Release, old: ReleaseRow | None) -> str:
    """How a release took over from the old one; empty = no old release."""
    if not old or not draft.placement or not draft.plan:
        return ""
    if draft.placement.stop_first:
        return draft.placement.stop_first
    overlap = "started while the old release served, which stopped after"
    if not is_canary(draft, old.release):
        return overlap
    replace = draft.spec.replace
    first, _ = split_off(draft.plan, replace.canary_share)
    count = len({spec.replica for spec in first.containers})
    watched = f"{count} of {draft.spec.replicas} replicas, watched for {replace.canary_seconds} s"
    return f"canary: {watched}; then the rest; {overlap}"


@dataclass
class ReleaseDraft:
    """The growing record of a release; finishing it adds the journal's steps."""

    release: Release
    journal: Journal
    old: ReleaseRow | None

    async def enter(self, state: ReleaseState) -> None:
        """Move the release to another state."""
        await in_thread(ledger().releases.move, self.release.id, state)

    async def pin(self, analyzed: Analyzed) -> None:
        """Pin the release to the resolved revisions."""
        await in_thread(ledger().releases.pin, self.release.id, analyzed.model.revision)
        self.add_analysis(analyzed)

    def add_analysis(self, analyzed: Analyzed) -> None:
        """Add the analysis of the model: revision, companions, files and profile."""
        model = analyzed.model
        found = {"revision": model.revision, "companions": model.pins}
        self.add(
            **found, local_files=model.local_files, files=analyzed.files, profile=analyzed.profile
        )

    def add(self, **values: object) -> None:
        """Add values from a step."""
        self.release = self.release.model_copy(update=values)

    async def complete(self, placed: Placed) -> None:
        """Add measurements, engine facts, the way of the replacement, and the end."""
        release, plan = self.release, self.release.plan
        assert plan, "what has started was planned"
        measured = await measure(placed, plan, release.workloads)
        facts = await read_facts(plan, measured)
        how = replacement_summary(release, self.old)
        self.finish(measured=measured, facts=facts, replacement=how)

    def finish(self, **values: object) -> None:
        """Add the last values, the steps and the end."""
        self.add(steps=tuple(self.journal.steps), finished_at=datetime.now(UTC), **values)

    def record_measurements(self) -> None:
        """Record its measurements for later predictions."""
        record_measurements(self.release)

    async def fail(self, error: Exception, failure: Failure) -> None:
        """Record why the release failed."""
        if isinstance(error, NoFit):
            self.add(**error.content)
        record = FailureRecord.model_validate(failure, from_attributes=True)
        if old := self.old:  # by now it has been restarted, or it never stopped
            line = await in_thread(ledger().releases.transitions, old.id)
            lost = outage(line, self.release.created_at, datetime.now(UTC))
            self.add(downtime_seconds=lost)
        self.finish(failure=record)
        await in_thread(ledger().releases.fail, self.release.id, failure.cause, self.release)


async def next_id(model: str) -> str:
    """The id that the next release of a model gets."""
    return await in_thread(ledger().releases.next_id, model)


async def begin_release(spec: ModelSpec, flow_run_id: str) -> str:
    """Begin a release; returns its id. If the flow is interrupted here, close the release."""
    with on_failure(partial(close_begun, spec.name, flow_run_id)):
        return await run_uninterrupted(ledger().releases.begin, spec, "", flow_run_id)


def close_begun(model: str, flow_run_id: str, cause: str) -> None:
    """Undo of `begin_release`: close a flow run's pending releases, whose lock it holds."""
    for row in ledger().releases.unfinished():
        if (row.model, row.flow_run_id, row.state) == (model, flow_run_id, ReleaseState.PENDING):
            ledger().releases.give_up(row.id, cause)


def close_on_failure(release: str, old: ReleaseRow | None) -> AbstractContextManager[None]:
    """Close a release as soon as the block fails, before its effects are undone.

    Then it can no longer take over, and its transition records the cause and time of the failure.
    The same transaction frees its claims, unless a workload was started, and gives the old release
    its claims back if it had to make room.
    """

    def give_up(cause: str) -> None:
        try:
            if not ledger().releases.give_up(release, cause, *claims_of(old)):
                tell(f"{release} has taken over and serves on")
        except Failure as failure:
            tell(f"could not close {release}: {failure}")

    return on_failure(give_up)


@contextmanager
def on_failure(undo: Callable[[str], None]) -> Iterator[None]:
    """Undo something, with the cause to record, as soon as the block fails."""
    try:
        yield
    except BaseException as error:
        cause = cause_of(error)
        run_shielded(lambda: undo(cause))
        raise


def cause_of(error: BaseException) -> str:
    """The cause to record for a release that ends with this error; bugs count as `internal`."""
    if failure := failure_of(error):
        return failure.cause
    from moorage.adapters.prefect.termination import is_terminating  # noqa: PLC0415  (as above)

    interrupted = was_interrupted(error) or is_terminating()
    return Cause.INTERRUPTED if interrupted else f"internal: {error!r}"
