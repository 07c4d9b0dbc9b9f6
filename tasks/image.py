"""Step image: choose the image; have it on the host, and know its digest."""

from __future__ import annotations

import asyncio

from prefect import task

from moorage.adapters.docker import DockerRuntime
from moorage.engines.registry import ENGINES
from moorage.failures import Cause, Failure
from moorage.images.choice import choose_image
from moorage.images.image import Image
from moorage.placement.placement import Placement
from moorage.placement.snapshot import FleetSnapshot
from moorage.spec import ModelSpec, RuntimeName
from tasks.context import in_thread
from tasks.journal import Note, step
from tasks.progress import Progress, shown
from tasks.retries import PLAIN, RETRIED


@task(name="image", task_run_name="choose the image for {spec.name}", **PLAIN)
async def choose(spec: ModelSpec, placement: Placement, snapshot: FleetSnapshot) -> Image | None:
    """Which image will run, and what the hosts know of it. Nothing is pulled."""
    with step("image") as note:
        image, addresses = _image(spec, placement, snapshot)
        if image is None:
            note.say("none: the engine is installed on the host")
            return None
        image = await _identified(image, addresses[0])
        note.say(f"{image.pinned} ({image.reason})")
        return image


@task(name="image", task_run_name="have the image for {spec.name}", **RETRIED)
async def pull(spec: ModelSpec, placement: Placement, snapshot: FleetSnapshot) -> Image | None:
    """Have the image on every placed host: pulled where it is not there yet."""
    with step("image") as note:
        image, addresses = _image(spec, placement, snapshot)
        if image is None:
            note.say("none: the engine is installed on the host")
            return None
        deadline = spec.readiness.deadlines.image_seconds
        try:
            async with asyncio.timeout(deadline):
                for address in addresses:
                    await _have(image, address, note, spec.slug)
        except TimeoutError as error:
            detail = f"{image.reference}: not pulled within {deadline} s"
            raise Failure(Cause.IMAGE_PULL_FAILED, detail) from error
        image = await _identified(image, addresses[0])
        note.say(f"{image.pinned} ({image.reason})")
        return image


async def _have(image: Image, address: str, note: Note, slug: str) -> None:
    runtime = DockerRuntime(address)
    if await in_thread(runtime.image_identity, image.reference):
        return

    async def fetch(progress: Progress) -> None:
        await in_thread(runtime.pull, image.reference, progress)

    await shown(fetch, note, f"pull-{slug}", f"Pulling {image.reference}")


async def _identified(image: Image, address: str) -> Image:
    known = await in_thread(DockerRuntime(address).image_identity, image.reference)
    if known is None:
        return image
    identity, digest = known
    return image.model_copy(update={"identity": identity, "digest": digest})


def _image(
    spec: ModelSpec, placement: Placement, snapshot: FleetSnapshot
) -> tuple[Image | None, list[str]]:
    """The image of the containers, and the addresses of the hosts that need it."""
    seats = [seat for seat in placement.seats if seat.runtime == RuntimeName.DOCKER]
    if not seats:
        return None, []
    engine = ENGINES[placement.engine]
    host = snapshot.host(seats[0].host)
    image = choose_image(
        spec, engine.name, engine.default_version, seats[0].accelerator_type, host.architecture
    )
    addresses = dict.fromkeys(snapshot.host(seat.host).address for seat in seats)
    return image, list(addresses)
