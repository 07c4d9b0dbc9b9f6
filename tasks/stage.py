"""Step stage: the weights, complete and verified, where they will be served."""

from __future__ import annotations

import asyncio
from pathlib import Path

from prefect import task

from moorage.adapters.disk import watching_the_disk
from moorage.adapters.sources import source_for
from moorage.models.assets import Asset, assets_of
from moorage.models.companions import brought_together
from moorage.models.source import ResolvedModel
from moorage.spec import ModelSpec, slug
from moorage.units import human_bytes
from tasks.context import in_thread, settings
from tasks.journal import step
from tasks.progress import Progress, shown
from tasks.resolve import hub_token
from tasks.retries import RETRIED


async def stage(spec: ModelSpec, model: ResolvedModel) -> ResolvedModel:
    """Have the model, its adapters and its draft model here, complete."""
    assets = assets_of(spec)
    found = (model, *(companion.model for companion in model.companions))
    jobs = (stage_asset(spec, *pair) for pair in zip(assets, found, strict=True))
    staged = await asyncio.gather(*jobs)
    if model.updates_folder:
        await in_thread(_make, Path(model.updates_folder))
    return brought_together(assets, staged)


@task(name="stage", task_run_name="stage {asset.source}", **RETRIED)
async def stage_asset(spec: ModelSpec, asset: Asset, found: ResolvedModel) -> ResolvedModel:
    """Download what is missing of one asset; a download that was cut goes on where it ended."""
    with step(f"stage{asset.step}") as note:
        token = await in_thread(hub_token, spec)
        source = source_for(asset, settings(), token, asset.role)

        async def download(progress: Progress) -> ResolvedModel:
            deadline = spec.readiness.deadlines.download_seconds
            return await in_thread(source.stage, found, progress, deadline_seconds=deadline)

        title, key = f"Downloading {asset.source}", f"download-{slug(spec.name + asset.step)}"
        staged = await shown(download, note, key, title)
        if found.staged:
            note.say(f"already in {found.path}")
            return staged
        note.say(f"{human_bytes(staged.bytes_to_stage)}, verified, in {staged.path}")
        return staged


def _make(folder: Path) -> None:
    with watching_the_disk(folder.parent):
        folder.mkdir(parents=True, exist_ok=True)
