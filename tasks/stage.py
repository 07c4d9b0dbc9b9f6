"""Step stage: weights, complete and verified, and cache folders on the hosts that serve."""

from __future__ import annotations

import asyncio
from pathlib import Path

from prefect import task

from moorage.adapters.docker.helper import PULL_SECONDS, ensure_helper_image
from moorage.adapters.engines.engine_folders import has_caches, make_remote_cache_folders
from moorage.adapters.sources import mirrors_of, read_keys, source_for
from moorage.adapters.system.os_errors import disk_failures
from moorage.adapters.transfer.bring_model import bring
from moorage.adapters.transfer.host_store import Staged
from moorage.common.units import human_bytes
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.inventory.access import parse_access
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.models.assets import Asset, AssetRole, assets_of
from moorage.models.source import ResolvedModel, brought_together, folder_of
from moorage.placement.lending import lender_for
from moorage.placement.placement import Placed
from moorage.spec import ModelSpec, slug
from tasks.artifacts import Progress, with_progress
from tasks.context import in_thread, settings
from tasks.journal import step, tell
from tasks.map_hosts import HostCall, gather_all, map_hosts
from tasks.retries import RETRIED


async def stage(placed: Placed) -> ResolvedModel:
    """Have the model, its adapters and its draft model on gather_all placed host, complete."""
    spec, model, snapshot = placed.spec, placed.model, placed.snapshot
    if snapshot.clusters:
        with step("stage") as note:
            note.say("nothing: the cluster's nodes take the model from its source")
        return model
    hosts = [
        snapshot.host(name) for name in dict.fromkeys(seat.host for seat in placed.placement.seats)
    ]
    remote = [host for host in hosts if host.store]
    assets = assets_of(spec)
    found = (model, *(companion.model for companion in model.companions))
    pairs = list(zip(assets, found, strict=True))
    here = [host for host in hosts if not host.store][:1]
    at_once = settings().hosts_at_once
    staged, _ = await gather_all(
        map_hosts(
            stage_asset, [_on(host, spec, *pair) for host in here for pair in pairs], at_once
        ),
        map_hosts(
            stage_remotely,
            [
                _on(host, spec, *pair, host=host, fleet=snapshot)
                for host in remote
                for pair in pairs
            ],
            at_once,
        ),
    )
    if not here:
        return model
    if model.updates_folder:
        await in_thread(_make_folder, Path(model.updates_folder))
    return brought_together(assets, staged)


@task(name="stage", task_run_name="stage {asset.source}", **RETRIED)
async def stage_asset(spec: ModelSpec, asset: Asset, found: ResolvedModel) -> ResolvedModel:
    """Download what is missing of one asset; a download that was cut goes on where it ended."""
    with step(f"stage{asset.step}") as note:
        keys = await in_thread(read_keys, spec)
        source = source_for(asset, settings(), keys, asset.role)

        async def download(progress: Progress) -> ResolvedModel:
            deadline = spec.readiness.deadlines.download_seconds
            return await in_thread(source.stage, found, progress, deadline_seconds=deadline)

        title, key = f"Downloading {asset.source}", f"download-{slug(spec.name + asset.step)}"
        staged = await with_progress(download, note, key, title)
        if found.staged:
            note.say(f"already in {found.path}")
            return staged
        note.say(f"{human_bytes(staged.bytes_to_stage)}, verified, in {staged.path}")
        return staged


@task(name="stage", task_run_name="stage {asset.source} on {host.name}", **RETRIED)
async def stage_remotely(
    spec: ModelSpec, asset: Asset, found: ResolvedModel, host: HostSnapshot, fleet: FleetSnapshot
) -> str:
    """Have one asset in the store of a host that is another machine."""
    with step(f"stage{asset.step} on {host.name}") as note:
        keys = await in_thread(read_keys, spec)
        deadline = spec.readiness.deadlines.download_seconds
        # The survey lists models, and not adapters, which are small.
        lender = None if asset.role == AssetRole.ADAPTER else lender_for(host, found, fleet)

        async def work(progress: Progress) -> Staged:
            return await in_thread(
                bring,
                found,
                host,
                folder_of(asset.role, host.store),
                await in_thread(mirrors_of, found, settings(), keys, deadline),
                lender,
                progress,
                workers=settings().download_workers,
                deadline_seconds=deadline,
                say=tell,
            )

        origin = f" from {lender.name}" if lender else ""
        title = f"Bringing {asset.source} to {host.name}{origin}"
        key = f"download-{slug(f'{spec.name}{asset.step} {host.name}')}"
        staged = await with_progress(work, note, key, title)
        size, origins = human_bytes(found.bytes_to_stage), _origins(staged)
        note.say(f"{size}, verified,{origins} in {staged.path} (by {staged.helper})")
        return note.summary


def _on(
    seen: HostSnapshot,
    spec: ModelSpec,
    asset: Asset,
    found: ResolvedModel,
    **more: HostSnapshot | FleetSnapshot,
) -> HostCall:
    arguments = {"spec": spec, "asset": asset, "found": found, **more}
    return HostCall(seen.name, seen.address, arguments, step=f"stage{asset.step} on {seen.name}")


def _origins(staged: Staged) -> str:
    """Whom the bytes came from, where they came."""
    parts = [f"{human_bytes(size)} from {name}" for name, size in staged.brought.items()]
    if len(staged.brought) == 1:
        return f" from {next(iter(staged.brought))},"
    return f" {', '.join(parts)}," if parts else ""


def _make_folder(folder: Path) -> None:
    with disk_failures(folder.parent):
        folder.mkdir(parents=True, exist_ok=True)


async def make_caches(plan: LaunchPlan, snapshot: FleetSnapshot) -> None:
    """Have the folders of a plan on hosts that are other machines; here the runtime makes them."""
    hosts = {
        spec.host
        for spec in plan.containers
        if has_caches(spec) and parse_access(spec.address).is_remote
    }
    await asyncio.gather(*(make_caches_on(host, plan, snapshot) for host in sorted(hosts)))


@task(name="keep", task_run_name="have folders to keep things in on {host}", **RETRIED)
async def make_caches_on(host: str, plan: LaunchPlan, snapshot: FleetSnapshot) -> None:
    """Have them on one host."""
    with step(f"keep on {host}") as note:
        specs = [spec for spec in plan.containers if spec.host == host]
        await in_thread(_make_cache_folders, snapshot.host(host), specs)
        kept = {mount.source for spec in specs for mount in spec.mounts if mount.kept}
        note.say(", ".join(sorted(kept)))


def _make_cache_folders(host: HostSnapshot, specs: list[ContainerSpec]) -> None:
    image = ensure_helper_image(host, host.helper_image, PULL_SECONDS)
    make_remote_cache_folders(host.model_copy(update={"helper_image": image}), specs)
