"""Step image: choose the image, pin it to its digest, and have it on the hosts."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from prefect import task

from moorage.adapters.docker.images import DockerImages, ensure_image
from moorage.adapters.registry.pinning import credentials, current_digest, identify_image, pin_image
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.images.image import Image
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.placement.placement import Placement
from moorage.placement.runtime import image_on
from moorage.releases.release import Release, ReleaseRow
from moorage.spec import ModelSpec, RuntimeName, slug
from moorage.spec.image_reference import parse_reference
from tasks.artifacts import Progress, with_progress
from tasks.context import PLAIN, RETRIED, settings
from tasks.journal import Note, step, within
from tasks.map_hosts import HostCall, map_hosts


@task(name="image", task_run_name="choose the image for {spec.name}", **PLAIN)
async def choose_image(
    spec: ModelSpec, placement: Placement, snapshot: FleetSnapshot
) -> Image | None:
    """Which image will run, and its digest. Nothing is pulled."""
    with step("image") as note:
        image, hosts = _image(spec, placement, snapshot)
        if image is None:
            note.say(_no_image(placement))
            return None
        image = await in_thread(pin_image, image, hosts[0])
        note.say(f"{image.pinned} ({image.reason})")
        return image


@task(name="image", task_run_name="have the image for {spec.name}", **PLAIN)
async def pull_image(
    spec: ModelSpec, placement: Placement, snapshot: FleetSnapshot
) -> Image | None:
    """Pull the image by its digest on every placed host that lacks it."""
    with step("image") as note:
        image, hosts = _image(spec, placement, snapshot)
        if image is None:
            note.say(_no_image(placement))
            return None
        (image,) = await map_hosts(pin, [_host_call(hosts[0], image=image, host=hosts[0])], 1)
        await pull_everywhere(image, hosts, spec)
        image = await in_thread(identify_image, image, hosts[0])
        note.say(f"{image.pinned} ({image.reason})")
        return image


@task(name="pin", task_run_name="pin the image on {host.name}", **RETRIED)
async def pin(image: Image, host: HostSnapshot) -> Image:
    """The image by its digest, as the registries of a host know it."""
    return await in_thread(pin_image, image, host)


@task(name="pull", task_run_name="pull on {host.name}", **RETRIED)
async def pull_on(spec: ModelSpec, image: Image, host: HostSnapshot, alone: bool) -> str:
    """Have the image on one host.

    Args:
        spec: The model; it says how long a pull may take.
        image: By its digest where that is known.
        host: Where.
        alone: Whether it is the only one; of several, each is a step of the journal.
    """
    deadline = spec.readiness.deadlines.image_seconds
    several = f"{spec.name} {host.name}"
    with within("image") if alone else step(f"image on {host.name}") as note:
        key = f"pull-{spec.slug if alone else slug(several)}"
        try:
            async with asyncio.timeout(deadline):
                await _ensure(image, host, note, spec, key)
        except TimeoutError as error:
            detail = f"{host.name}: {image.reference} was not there after {deadline} s"
            raise Failure(Cause.IMAGE_PULL_TIMEOUT, detail) from error
        except Failure as failure:
            raise failure.at(host.name) from failure
        note.say(image.pinned)
        return image.pinned


@task(name="image", task_run_name="look whether the image of {row.id} moved", **PLAIN)
async def image_drift(row: ReleaseRow, fleet: Fleet) -> str:
    """In words, that the tag which a release was made from stands for another image now.

    Empty where it does not, or where nobody can tell.
    """
    image = row.release.image if row.release else None
    if image is None or not image.digest or parse_reference(image.reference).digest:
        return ""
    with step("image") as note:
        digest = await in_thread(current_digest, image, fleet.registries)
        if digest in ("", image.digest):
            note.say(f"{image.pinned}{'' if digest else ' (its registry does not answer)'}")
            return ""
        newer = image.model_copy(update={"digest": digest}).pinned
        note.say(f"drift: {image.reference} stands for {digest} now, {row.id} runs {image.digest}")
        return f"{image.reference} was moved since: set `engine.image: {newer}` to take it"


def _no_image(placement: Placement) -> str:
    if any(seat.runtime == RuntimeName.RAY for seat in placement.seats):
        return "none: the engine is installed on the cluster"
    return "none: the engine is installed on the host"


def restore_image(release: Release) -> None:
    """Have the image of a release that starts again, by its digest: it may have been removed.

    The registry gets the credentials of Docker's own login.
    """
    containers = release.plan.containers if release.plan else ()
    addresses = {spec.address for spec in containers if spec.runtime == RuntimeName.DOCKER}
    for address in sorted(addresses):
        if release.image:
            ensure_image(
                DockerImages(address),
                release.image,
                settings().locks,
                lambda _done, _total: None,
                credentials=lambda: None,
                wait_seconds=release.spec.readiness.deadlines.image_seconds,
            )


async def pull_everywhere(image: Image, hosts: list[HostSnapshot], spec: ModelSpec) -> None:
    """Have it on several hosts, side by side."""
    alone = len(hosts) == 1
    calls = [_host_call(host, spec=spec, image=image, host=host, alone=alone) for host in hosts]
    await map_hosts(pull_on, calls, settings().hosts_at_once)


def image_hosts(placement: Placement, snapshot: FleetSnapshot) -> list[HostSnapshot]:
    """The hosts that need the image, each daemon once; none where all are processes."""
    seats = [seat for seat in placement.seats if seat.runtime == RuntimeName.DOCKER]
    hosts = (snapshot.host(seat.host) for seat in seats)
    return list({host.address: host for host in hosts}.values())


def wanted_image(spec: ModelSpec, placement: Placement, snapshot: FleetSnapshot) -> Image | None:
    """The image of the containers as its publisher names it; None where there are none."""
    return _image(spec, placement, snapshot)[0]


async def _ensure(image: Image, host: HostSnapshot, note: Note, spec: ModelSpec, key: str) -> None:
    async def fetch(progress: Progress) -> None:
        await in_thread(
            ensure_image,
            DockerImages(host.address),
            image,
            settings().locks,
            progress,
            credentials=partial(credentials, host.registries, image.reference),
            wait_seconds=spec.readiness.deadlines.image_seconds,
        )

    await with_progress(fetch, note, key, f"Pulling {image.reference} on {host.name}")


def _host_call(seen: HostSnapshot, **arguments: Any) -> HostCall:
    named = "" if arguments.get("alone", True) else f"image on {seen.name}"
    return HostCall(seen.name, seen.address, arguments, step=named)


def _image(
    spec: ModelSpec, placement: Placement, snapshot: FleetSnapshot
) -> tuple[Image | None, list[HostSnapshot]]:
    """The image of the containers as its publisher names it, and the hosts that need it."""
    hosts = image_hosts(placement, snapshot)
    if not hosts:
        return None, []
    first = next(seat for seat in placement.seats if seat.runtime == RuntimeName.DOCKER)
    image = image_on(
        spec, ENGINES[placement.engine], snapshot.host(first.host), first.accelerator_type
    )
    return image, hosts
