"""Step release: the audit record, in the ledger and as an artifact."""

from __future__ import annotations

from prefect import task

from moorage.common.failures import Failure
from moorage.releases.release import Release
from moorage.releases.timeline import stays
from moorage.reports.record import failure_document, plan_document, release_document
from moorage.spec import slug
from tasks.artifacts import show_markdown
from tasks.context import in_full, in_thread, ledger, router
from tasks.journal import step
from tasks.retries import PLAIN


@task(name="release", task_run_name="release {release.id}", **PLAIN)
async def publish(release: Release) -> Release:
    """Write the record and send requests to the release, in one step; the record as written."""
    with step("release") as note:
        release = await in_full(router().switch, release)
        told = stays(
            release.created_at,
            release.flow_run_id,
            await in_thread(ledger().releases.transitions, release.id),
        )
        await show_markdown(
            f"release-{release.spec.slug}",
            release_document(release, told).markdown(),
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
