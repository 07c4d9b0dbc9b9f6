"""Step stage: the weights, complete and verified, where they will be served."""

from __future__ import annotations

from prefect import task

from moorage.adapters.sources import source_for
from moorage.models.source import ResolvedModel
from moorage.spec import ModelSpec
from moorage.units import human_bytes
from tasks.context import in_thread, settings
from tasks.journal import step
from tasks.progress import Progress, shown
from tasks.resolve import hub_token
from tasks.retries import RETRIED


@task(name="stage", task_run_name="stage {spec.source}", **RETRIED)
async def stage(spec: ModelSpec, model: ResolvedModel) -> ResolvedModel:
    """Download what is missing; a download that was cut goes on where it ended."""
    with step("stage") as note:
        source = source_for(spec, settings(), await in_thread(hub_token, spec))

        async def download(progress: Progress) -> ResolvedModel:
            deadline = spec.readiness.deadlines.download_seconds
            return await in_thread(source.stage, model, progress, deadline_seconds=deadline)

        title = f"Downloading {spec.source}"
        staged = await shown(download, note, f"download-{spec.slug}", title)
        if model.staged:
            note.say(f"already in {model.path}")
            return staged
        note.say(f"{human_bytes(staged.bytes_to_stage)}, verified, in {staged.path}")
        return staged
