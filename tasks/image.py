"""Step image: choose the image, pin it to its digest, and pull it on the hosts."""

import asyncio
from contextlib import suppress

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.docker.pulls import ensure_image
from moorage.adapters.registry.pinning import (
    current_digest,
    identify_image,
    pin_image,
    pull_sources,
)
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.common.units import human_bytes
from moorage.engines.registry import ENGINES
from moorage.images.image import Image, common_image
from moorage.inventory.access import parse_access
from moorage.inventory.checks import IMAGE_DISK
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.placement import Placed
from moorage.placement.runtime import hardware_of_seat, shared_image
from moorage.releases.release import Release
from moorage.releases.release_row import ReleaseRow
from moorage.spec import EngineName, ModelSpec, RuntimeName, slug
from moorage.spec.image_reference import parse_reference, repository
from tasks.artifacts import Progress, with_progress
from tasks.context import settings
from tasks.flow_task import flow_task
from tasks.journal import step, within
from tasks.map_hosts import HostCall, gather_all, map_hosts
from tasks.restore_image import exact_image, missing_for_good

LARGE = frozenset({EngineName.VLLM, EngineName.SGLANG, EngineName.TRITON})
"""Engines whose images for accelerators hold the libraries of a whole framework."""


@flow_task("image", "choose the image for {placed.spec.name}")
async def choose_image(placed: Placed) -> Image | None:
    """Choose the image and pin its digest, without pulling; None without containers."""
    with step("image") as note:
        image, hosts = wanted_image(placed)
        if image:
            image = await in_thread(pin_image, image, hosts[0])
            # Hosts that lack an image with a digest pull it by that: they cannot differ.
            image = await _identify(image, hosts) if image.identity and hosts[1:] else image
        note.say(f"{image.pinned} ({image.reason})" if image else _no_image(placed))
        return image


@flow_task("image", "have the image for {placed.spec.name}")
async def pull_image(placed: Placed, target: Release | None = None) -> Image | None:
    """Pull the image on every placed host by its digest; for `target`, exactly its image.

    Raises `IMAGE_MISSING` when neither its registry nor the host still has it, or when the hosts
    have different images under one name.
    """
    with step("image") as note:
        wanted, hosts = (target.image, image_hosts(placed)) if target else wanted_image(placed)
        if wanted is None or not hosts:
            note.say(_no_image(placed))
            return None
        if target:
            with missing_for_good():
                places = {host.address: host.name for host in hosts}
                if exact := await in_thread(exact_image, wanted, places):
                    await _pull_everywhere(exact, hosts, placed.spec)
        else:
            call = HostCall(hosts[0].name, hosts[0].address, {"image": wanted, "host": hosts[0]})
            (wanted,) = await map_hosts(pin, [call], 1)
            await _pull_everywhere(wanted, hosts, placed.spec)
        image = await _identify(wanted, hosts)
        note.say(f"{image.pinned} ({f'the image of {target.id}' if target else image.reason})")
        return image


@flow_task("pin", "pin the image on {host.name}", retried=True)
async def pin(image: Image, host: HostSnapshot) -> Image:
    """The image with its digest, as the host's registries resolve it."""
    return await in_thread(pin_image, image, host)


@flow_task("pull", "pull on {host.name}", retried=True)
async def pull_on(spec: ModelSpec, image: Image, host: HostSnapshot, alone: bool) -> str:
    """Pull the image on one host; with several hosts, each pull is a step of the journal."""
    deadline = spec.readiness.deadlines.image_seconds
    key = f"pull-{slug(spec.name) if alone else slug(f'{spec.name} {host.name}')}"

    async def fetch(progress: Progress) -> None:
        images = DockerImages(host.address)
        try:
            await in_thread(
                ensure_image,
                images,
                image,
                settings().locks,
                progress,
                sources=pull_sources(image, host.registries),
                wait_seconds=deadline,
            )
        except Failure:
            if not await in_thread(_is_loaded, images, image):
                raise

    with within("image") if alone else step(f"image on {host.name}") as note:
        try:
            async with asyncio.timeout(deadline):
                title = f"Pulling {image.reference} on {host.name}"
                await with_progress(fetch, note, key, title)
        except TimeoutError as error:
            detail = f"{host.name}: {image.reference} was not there after {deadline} s"
            raise Failure(Cause.IMAGE_PULL_TIMEOUT, detail) from error
        except Failure as failure:
            raise failure.at(host.name) from failure
        note.say(image.pinned)
        return image.pinned


def _is_loaded(images: DockerImages, image: Image) -> bool:
    """Whether a host has the very image under its name, without a digest: from an archive."""
    names = dict.fromkeys((image.reference, image.as_written)) if image.identity else ()
    return any(one and one.identity == image.identity for one in map(images.find, names))


@flow_task("image", "look whether the image of {row.id} moved")
async def image_drift(row: ReleaseRow, fleet: Fleet) -> str:
    """Advice when the image tag of a release now names another image.

    Empty when the tag is unchanged or the registry does not answer.
    """
    image = tracked_image(row.release) if row.release else None
    if image is None:
        return ""
    with step("image") as note:
        digest = await in_thread(current_digest, image, fleet.registries)
        if digest in ("", image.digest):
            note.say(f"{image.pinned}{'' if digest else ' (its registry does not answer)'}")
            return ""
        newer = f"{repository(image.as_written)}@{digest}"
        note.say(f"drift: {image.as_written} is now {digest}, {row.id} runs {image.digest}")
        return f"{image.as_written} was moved since: set `engine.image: {newer}` to take it"


def tracked_image(release: Release) -> Image | None:
    """The image of a release if its tag may have moved since; else None."""
    image = release.image
    fixed = image is None or not image.digest or parse_reference(image.reference).digest
    return None if fixed else image


def lacking_image_room(placed: Placed, image: Image | None) -> tuple[str, ...]:
    """Hosts that lack the image and may not have room for it, a line each; call it in a thread.

    Judges by the usual size of such an image. Its own size is in its list of layers, and reading
    that counts as a pull where a registry limits pulls.
    """
    engine, seats = placed.placement.engine, placed.placement.seats
    if image is None or engine not in LARGE or not any(seat.accelerators for seat in seats):
        return ()
    lacking = (host for host in image_hosts(placed) if not image.is_among(host.images))
    return tuple(
        f"{host.name} may lack the room to pull {image.reference}: {human_bytes(free)} are free, an"
        f" image of {engine} takes up to {human_bytes(IMAGE_DISK)}"
        for host in lacking
        if (free := _disk_free(host)) is not None and free < IMAGE_DISK
    )


def _disk_free(host: HostSnapshot) -> int | None:
    if parse_access(host.address).is_remote:
        return host.image_disk_free
    with suppress(Failure):
        return DockerImages(host.address).disk_free()
    return None


def image_hosts(placed: Placed) -> list[HostSnapshot]:
    """The hosts that need the image, each daemon once; empty where all seats are processes."""
    seats = [seat for seat in placed.placement.seats if seat.runtime == RuntimeName.DOCKER]
    hosts = (placed.snapshot.host(seat.host) for seat in seats)
    return list({host.address: host for host in hosts}.values())


def wanted_image(placed: Placed) -> tuple[Image | None, list[HostSnapshot]]:
    """The image of the containers, not yet pinned, and the hosts that need it."""
    hosts, seats = image_hosts(placed), placed.placement.seats
    if not hosts:
        return None, []
    own = [seat for seat in seats if seat.runtime == RuntimeName.DOCKER]
    there = placed.snapshot.host
    places = (
        hardware_of_seat(there(seat.host), seat.accelerator_type, seat.accelerators) for seat in own
    )
    return shared_image(placed.spec, ENGINES[placed.placement.engine], places), hosts


def _no_image(placed: Placed) -> str:
    on_cluster = any(seat.runtime == RuntimeName.RAY for seat in placed.placement.seats)
    return f"none: the engine is installed on the {'cluster' if on_cluster else 'host'}"


async def _identify(image: Image, hosts: list[HostSnapshot]) -> Image:
    """The image under the name by which all hosts have it; `IMAGE_MISSING` if they differ."""
    there = await gather_all(*(in_thread(identify_image, image, host) for host in hosts))
    return common_image({host.name: one for host, one in zip(hosts, there, strict=True)})


async def _pull_everywhere(image: Image, hosts: list[HostSnapshot], spec: ModelSpec) -> None:
    alone = len(hosts) == 1
    calls = [
        HostCall(
            host.name,
            host.address,
            {"spec": spec, "image": image, "host": host, "alone": alone},
            step="" if alone else f"image on {host.name}",
        )
        for host in hosts
    ]
    await map_hosts(pull_on, calls, settings().hosts_at_once)
