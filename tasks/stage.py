"""Step stage: put complete, verified weights and cache folders on the placed hosts."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from moorage.adapters.docker.helper_image import PULL_SECONDS, ensure_helper_image
from moorage.adapters.docker.images import DockerImages
from moorage.adapters.engines.engine_folders import make_remote_cache_folders
from moorage.adapters.sources import mirrors_of, read_keys, source_for
from moorage.adapters.system.os_errors import disk_failures
from moorage.adapters.system.threads import in_thread
from moorage.adapters.transfer.bring_model import Delivery, bring
from moorage.adapters.transfer.host_store import Staged
from moorage.adapters.transfer.store_cleanup import Store, prune, stores_of
from moorage.common.failures import Failure
from moorage.common.units import human_bytes
from moorage.engines.launch import LaunchPlan
from moorage.images.image import Image
from moorage.inventory.access import parse_access
from moorage.inventory.fleet import Fleet
from moorage.inventory.model_store import folder_name
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.models.assets import Asset, assets_of
from moorage.models.pin import AssetRole
from moorage.models.source import ResolvedModel, folder_of, join_companions
from moorage.operations.stored_models import Need, Stored, StoredState, shared_needs, sharing_hosts
from moorage.placement.lending import lender_for
from moorage.placement.placement import Placed
from moorage.spec import ModelSpec, slug
from moorage.spec.image_reference import familiar, parse_reference
from tasks.adapters import tidy
from tasks.artifacts import Progress, with_progress
from tasks.context import ledger, settings
from tasks.flow_task import flow_task
from tasks.image import wanted_image
from tasks.journal import step, tell
from tasks.map_hosts import HostCall, gather_all, map_hosts


async def stage(placed: Placed) -> ResolvedModel:
    """Stage the model, its adapters and its draft model completely on each placed host."""
    spec, model, snapshot = placed.spec, placed.model, placed.snapshot
    if snapshot.clusters:
        with step("stage") as note:
            note.say("nothing: the cluster's nodes take the model from its source")
        return model
    names = dict.fromkeys(seat.host for seat in placed.placement.seats)
    hosts = [snapshot.host(name) for name in names]
    assets = assets_of(spec)
    pairs = list(zip(assets, model.parts, strict=True))
    here = [host for host in hosts if not host.store][:1]
    local = [_host_call(host, asset, spec=spec, found=one) for host in here for asset, one in pairs]
    remote = [
        _host_call(host, asset, spec=spec, found=one, host=host, fleet=snapshot)
        for host in hosts
        if host.store
        for asset, one in pairs
    ]
    at_once = settings().hosts_at_once
    staged, _ = await gather_all(
        map_hosts(stage_asset, local, at_once), map_hosts(stage_remotely, remote, at_once)
    )
    if not here:
        return model
    if model.updates_folder:
        folder = Path(model.updates_folder)
        with disk_failures(folder.parent):
            await in_thread(folder.mkdir, parents=True, exist_ok=True)
    return join_companions(assets, staged)


async def fetch(
    image: Awaitable[Image | None], model: Awaitable[ResolvedModel]
) -> tuple[Image | None, ResolvedModel]:
    """Fetch image and model at the same time.

    If an undo will remove fetched files (`keep_fetched` is off), both fetches end before a failure
    is raised.
    """
    if settings().keep_fetched:
        return await asyncio.gather(image, model)
    pulled, staged = await gather_all(image, model)
    return pulled, staged


async def fetch_undos(placed: Placed, fleet: Fleet) -> list[tuple[str, Callable[[], None]]]:
    """The undos of the steps image and stage, with their labels."""
    undos: list[tuple[str, Callable[[], None]]] = []
    if not settings().keep_fetched:
        before = await in_thread(before_fetching, placed, fleet)
        undos.append(("remove what was fetched", before.remove))
    if placed.model.updates_folder:
        undos.append(("remove the folder of its adapters", partial(tidy, placed.spec.name)))
    return undos


@flow_task("stage", "stage {asset.source}", retried=True)
async def stage_asset(spec: ModelSpec, asset: Asset, found: ResolvedModel) -> ResolvedModel:
    """Download the missing files of one asset, resuming interrupted downloads."""
    with step(f"stage{asset.step}") as note:
        keys = await in_thread(read_keys, spec)
        source = source_for(asset, settings(), keys)

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


@flow_task("stage", "stage {asset.source} on {host.name}", retried=True)
async def stage_remotely(
    spec: ModelSpec, asset: Asset, found: ResolvedModel, host: HostSnapshot, fleet: FleetSnapshot
) -> str:
    """Stage one asset in the store of a remote host."""
    with step(f"stage{asset.step} on {host.name}") as note:
        keys = await in_thread(read_keys, spec)
        deadline = spec.readiness.deadlines.download_seconds
        # The survey lists stored models but no adapters, which are small.
        lender = None if asset.role == AssetRole.ADAPTER else lender_for(host, found, fleet)

        async def work(progress: Progress) -> Staged:
            mirrors = await in_thread(mirrors_of, found, settings(), keys, deadline)
            folder, workers = folder_of(asset.role, host.store), settings().download_workers
            delivery = Delivery(found, host, folder, mirrors, lender, workers)
            return await in_thread(bring, delivery, progress, deadline_seconds=deadline, say=tell)

        origin = f" from {lender.name}" if lender else ""
        title = f"Bringing {asset.source} to {host.name}{origin}"
        key = f"download-{slug(f'{spec.name}{asset.step} {host.name}')}"
        staged = await with_progress(work, note, key, title)
        size, origins = human_bytes(found.bytes_to_stage), _origins(staged)
        note.say(f"{size}, verified,{origins} in {staged.path} (by {staged.helper})")
        return note.summary


def _host_call(seen: HostSnapshot, asset: Asset, **more: object) -> HostCall:
    step = f"stage{asset.step} on {seen.name}"
    return HostCall(seen.name, seen.address, {"asset": asset, **more}, step)


def _origins(staged: Staged) -> str:
    """The origins of the bytes, for the summary; empty where no bytes were brought."""
    parts = [f"{human_bytes(size)} from {name}" for name, size in staged.brought.items()]
    if len(staged.brought) == 1:
        return f" from {next(iter(staged.brought))},"
    return f" {', '.join(parts)}," if parts else ""


async def make_caches(plan: LaunchPlan, snapshot: FleetSnapshot) -> None:
    """Make the cache folders of a plan on remote hosts; on this machine the runtime makes them."""
    hosts = {
        spec.host
        for spec in plan.containers
        if any(mount.kept for mount in spec.mounts) and parse_access(spec.address).is_remote
    }
    await asyncio.gather(*(make_caches_on(host, plan, snapshot) for host in sorted(hosts)))


@flow_task("keep", "have folders to keep things in on {host}", retried=True)
async def make_caches_on(host: str, plan: LaunchPlan, snapshot: FleetSnapshot) -> None:
    """Make the cache folders of a plan on one host."""
    with step(f"keep on {host}") as note:
        specs = [spec for spec in plan.containers if spec.host == host]
        there = snapshot.host(host)
        image = await in_thread(ensure_helper_image, there, there.helper_image, PULL_SECONDS)
        helped = there.model_copy(update={"helper_image": image})
        await in_thread(make_remote_cache_folders, helped, specs)
        kept = {mount.source for spec in specs for mount in spec.mounts if mount.kept}
        note.say(", ".join(sorted(kept)))


Shelved = tuple[str, str]
"""A model in a store: folder name of its source, and revision."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Models and images on the hosts of a deploy before it fetched any.

    Attributes:
        wanted: Models that the deploy may fetch into the stores.
        everywhere: Stores of all hosts; some may be the same directory.
        complete: Models that were complete in a store, each with its host.
        image: Name of the deploy's image, without registry and folders; empty = it needs none.
        images: References and digests that each daemon had, by address.
    """

    wanted: frozenset[Shelved]
    stores: tuple[Store, ...]
    everywhere: tuple[Store, ...]
    complete: frozenset[tuple[str, Shelved]]
    image: str
    images: dict[str, frozenset[str]]

    def remove(self) -> None:
        """Undo of fetching: remove models and images that were missing before and are not needed.

        Idempotent; does nothing when none was fetched.
        """
        for store in self.stores:
            self._remove_models(store)
        if ledger().releases.unfinished():
            return  # another deploy may be about to start a fetched image
        for address, before in self.images.items():
            images = DockerImages(address)
            for name in sorted(images.names() - before):
                if _last_part(name) == self.image:
                    images.remove(name)

    def _remove_models(self, store: Store) -> None:
        needs = ledger().releases.needs
        going = [
            one
            for one in store.stored(needs())
            if (place := _place(one)) in self.wanted
            and (one.host, place) not in self.complete
            and not one.used_by
        ]
        sharing = self._sharing_hosts(store, going, needs())

        def needs_here() -> Sequence[Need]:
            return shared_needs(needs(), store.host, sharing)

        going = [
            one
            for one in going
            if not any(need.concerns(one, store.host.__eq__) for need in needs_here())
        ]
        if going:
            prune(store, going, needs_here)

    def _sharing_hosts(
        self, store: Store, models: Sequence[Stored], needs: Iterable[Need]
    ) -> frozenset[str]:
        """Other hosts that need one of the models, and whose store is or may be this directory."""
        users = frozenset[str]().union(
            *(need.hosts for need in needs for one in models if need.concerns(one, bool))
        )
        found, silent = list[Stored](), set[str]()
        for other in self.everywhere:
            if other is not store and other.host in users:
                try:
                    found += other.stored(())
                except Failure:
                    silent.add(other.host)
        return sharing_hosts(models, found) | silent


def before_fetching(placed: Placed, fleet: Fleet) -> Fetched:
    """The models and images that the placed hosts have now."""
    hosts = {seat.host for seat in placed.placement.seats}
    everywhere = stores_of(fleet, settings())
    stores = tuple(one for one in everywhere if one.host in hosts)
    stored = [one for store in stores for one in store.stored(())]
    image, daemons = wanted_image(placed)
    models = placed.model.parts
    return Fetched(
        wanted=frozenset((folder_name(one.source), one.revision) for one in models),
        stores=stores,
        everywhere=everywhere,
        complete=frozenset(
            (one.host, _place(one)) for one in stored if one.state == StoredState.COMPLETE
        ),
        image=_last_part(image.reference) if image else "",
        images={host.address: DockerImages(host.address).names() for host in daemons},
    )


def _place(stored: Stored) -> Shelved:
    return stored.path.split("/")[1], stored.revision


def _last_part(name: str) -> str:
    return parse_reference(familiar(name)).path.rpartition("/")[2]
