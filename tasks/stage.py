"""Step stage: the weights, complete and verified, where they will be served."""

from __future__ import annotations

import asyncio
from pathlib import Path

from prefect import task

from moorage.access import parse_access
from moorage.adapters.disk import watching_the_disk
from moorage.adapters.remote_host import have_helper
from moorage.adapters.settings import Settings
from moorage.adapters.sources import source_for
from moorage.adapters.staging.host_store import HostStore
from moorage.adapters.staging.job import job_of
from moorage.models.assets import Asset, assets_of
from moorage.models.companions import brought_together
from moorage.models.placed import folder_of
from moorage.models.source import ResolvedModel
from moorage.placement.placement import Placement
from moorage.placement.snapshot import FleetSnapshot, HostSnapshot
from moorage.spec import ModelSpec, slug
from moorage.units import human_bytes
from tasks.context import in_thread, settings
from tasks.journal import step
from tasks.progress import Progress, shown
from tasks.resolve import hub_token
from tasks.retries import RETRIED


async def stage(
    spec: ModelSpec, model: ResolvedModel, placement: Placement, snapshot: FleetSnapshot
) -> ResolvedModel:
    """Have the model, its adapters and its draft model on every placed host, complete."""
    if snapshot.clusters:
        with step("stage") as note:
            note.say("nothing: the cluster's nodes take the model from its source")
        return model
    hosts = [snapshot.host(name) for name in dict.fromkeys(seat.host for seat in placement.seats)]
    remote = [host for host in hosts if host.store]
    assets = assets_of(spec)
    found = (model, *(companion.model for companion in model.companions))
    pairs = list(zip(assets, found, strict=True))
    there = asyncio.gather(
        *(stage_remotely(spec, *pair, host) for host in remote for pair in pairs)
    )
    if len(remote) == len(hosts):
        await there
        return model
    staged, _ = await asyncio.gather(
        asyncio.gather(*(stage_asset(spec, *pair) for pair in pairs)), there
    )
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


@task(name="stage", task_run_name="stage {asset.source} on {host.name}", **RETRIED)
async def stage_remotely(
    spec: ModelSpec, asset: Asset, found: ResolvedModel, host: HostSnapshot
) -> None:
    """Have one asset in the store of a host that is another machine."""
    with step(f"stage{asset.step} on {host.name}") as note:
        token = await in_thread(hub_token, spec)
        deadline = spec.readiness.deadlines.download_seconds

        async def bring(progress: Progress) -> str:
            return await in_thread(
                _bring, asset, found, host, settings(), token, progress, deadline
            )

        title = f"Bringing {asset.source} to {host.name}"
        key = f"download-{slug(f'{spec.name}{asset.step} {host.name}')}"
        path = await shown(bring, note, key, title)
        note.say(f"{human_bytes(found.bytes_to_stage)}, verified, in {path}")


def _bring(
    asset: Asset,
    found: ResolvedModel,
    host: HostSnapshot,
    settings: Settings,
    token: str | None,
    progress: Progress,
    deadline: float,
) -> str:
    access = parse_access(host.address)
    image = have_helper(access, host.helper_image, host.registries)
    store = HostStore(access, image, folder_of(asset.role, host.store))
    workers = settings.download_workers
    job = job_of(found, settings.hub_endpoint, token, workers=workers, seconds=deadline)
    return store.stage(found, job, progress, deadline)


def _make(folder: Path) -> None:
    with watching_the_disk(folder.parent):
        folder.mkdir(parents=True, exist_ok=True)
