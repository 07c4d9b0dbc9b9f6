"""Step release: the audit record, in the ledger and as an artifact."""

from __future__ import annotations

from prefect import task

from moorage.adapters.engines.probe import ask
from moorage.adapters.hosts.runtime import runtime_for
from moorage.common.failures import Cause, Failure
from moorage.readiness.protocol import Phase, Probe
from moorage.releases.release import Release, ReleaseRow
from moorage.releases.timeline import stays
from moorage.reports.record import failure_document, plan_document, release_document
from moorage.spec import ModelSpec, slug
from tasks.artifacts import show_markdown
from tasks.context import in_full, in_thread, ledger, router, settings
from tasks.journal import step
from tasks.retries import PLAIN
from tasks.visibility import in_sight

HEALTH_SECONDS = 5.0


@task(name="compare", task_run_name="compare with what serves {spec.name}", **PLAIN)
async def serving(
    spec: ModelSpec, avoided: frozenset[str] = frozenset()
) -> tuple[ReleaseRow | None, bool]:
    """The release that serves the model name now, and whether it still does.

    Args:
        spec: The model.
        avoided: Hosts that nothing is placed on. One of them need not be seen: what is out of
            sight there does not serve.

    Raises:
        Failure: Of another host that could not be asked: what it runs may well serve.
    """
    with step("compare") as note:
        row = await in_thread(ledger().releases.running, spec.name)
        if row is None:
            note.say("nothing serves this name yet")
            return None, False
        try:
            with in_sight(row):
                healthy = await _is_healthy(row, spec)
        except Failure as failure:
            if not avoided or failure.cause is not Cause.RUNTIME_UNAVAILABLE:
                raise
            if not {workload.host for workload in row.workloads} <= avoided:
                raise
            healthy = False
        note.say(f"{row.id} {'serves' if healthy else 'is recorded as running, but is not there'}")
        return row, healthy


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


async def _is_healthy(row: ReleaseRow, spec: ModelSpec) -> bool:
    probe = Probe(
        phase=Phase.HEALTHY,
        deadline="load_seconds",
        method="GET",
        path=(row.release.spec if row.release else spec).readiness.probe.path,
    )
    for workload in row.workloads:
        runtime = runtime_for(workload.runtime, workload.address, settings())
        seen = await in_thread(runtime.observe, workload)
        if not seen.running or seen.ready is False:
            return False
        if seen.ready or not workload.serves:
            continue
        status, _ = await ask(workload.endpoint, probe, HEALTH_SECONDS)
        if status != 200:
            return False
    return bool(row.workloads)
