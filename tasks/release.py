"""Step release: the audit record, in the ledger and as an artifact."""

from __future__ import annotations

from prefect import task

from moorage.common.failures import Failure
from moorage.common.units import human_seconds
from moorage.engines.launch import LABEL_REPLICA
from moorage.engines.start_order import split_off
from moorage.releases.release import Release, ReleaseRow
from moorage.releases.timeline import stays
from moorage.reports.record import failure_document, plan_document, release_document
from moorage.spec import slug
from tasks.artifacts import show_markdown
from tasks.context import in_thread, ledger, router, run_uninterrupted
from tasks.journal import step
from tasks.retries import PLAIN
from tasks.smoke_test import is_canary


@task(name="release", task_run_name="release {release.id}", **PLAIN)
async def publish(release: Release) -> Release:
    """Write the record and send requests to the release, in one step; the record as written."""
    with step("release") as note:
        release = await run_uninterrupted(router().switch, release)
        timeline = stays(
            release.created_at,
            release.flow_run_id,
            await in_thread(ledger().releases.transitions, release.id),
        )
        await show_markdown(
            f"release-{release.spec.slug}",
            release_document(release, timeline).markdown(),
            f"{release.id} serves {release.model}",
        )
        note.say(f"{release.id} serves {release.model}")
        return release


async def publish_failure(model: str, failure: Failure, release: str) -> None:
    """Show a failure with its cause, suggestion and log tail as an artifact of the run."""
    page = failure_document(model, failure, release).markdown()
    await show_markdown(f"failure-{slug(model)}", page, str(failure)[:500])


async def publish_plan(release: Release, title: str) -> None:
    """Show what a deploy runs, or would run, as an artifact."""
    await show_markdown(f"plan-{release.spec.slug}", plan_document(release).markdown(), title)


def announcement(release: Release) -> str:
    """What a release serves, where, and what was changed or lost to make it start."""
    endpoints = ", ".join(f"{workload.endpoint}/v1" for workload in release.serving)
    corrected = "".join(f"; second try: {one.summary}" for one in release.corrections)
    lost = release.downtime_seconds
    gap = f"; nobody served for {human_seconds(lost)}" if lost else ""
    return f"{release.id} serves {release.model} at {endpoints}{corrected}{gap}"


def replacement_summary(draft: Release, old: ReleaseRow | None) -> str:
    """In which way a release took over from another; empty = there was none."""
    if not old or not draft.placement or not draft.plan:
        return ""
    if draft.placement.stop_first:
        return draft.placement.stop_first
    overlap = "started beside the old release, which stopped after"
    if not is_canary(draft, old.release):
        return overlap
    replace = draft.spec.replace
    first, _ = split_off(draft.plan, replace.canary_share)
    count = len({spec.labels[LABEL_REPLICA] for spec in first.containers})
    watched = f"{count} of {draft.spec.replicas} replicas, watched for {replace.canary_seconds} s"
    return f"canary: {watched}; then the rest; {overlap}"
