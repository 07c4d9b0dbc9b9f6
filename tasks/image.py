"""Step image: choose the image, pin it to its digest, and have it on the hosts."""

from __future__ import annotations

import asyncio
from functools import partial

from prefect import task

from moorage.adapters.docker import DockerRuntime
from moorage.adapters.manifest import Found
from moorage.adapters.pulling import have_image
from moorage.adapters.registry import RegistryClient
from moorage.adapters.registry_auth import Credentials
from moorage.adapters.registry_places import find_first
from moorage.adapters.secrets import read_secrets
from moorage.engines.registry import ENGINES
from moorage.failures import Cause, Failure
from moorage.images.image import Image
from moorage.images.reference import parse_reference
from moorage.images.registries import Registries
from moorage.placement.image import image_on
from moorage.placement.placement import Placement
from moorage.placement.snapshot import FleetSnapshot, HostSnapshot
from moorage.spec import ModelSpec, RuntimeName
from tasks.context import in_thread, settings
from tasks.journal import Note, step
from tasks.progress import Progress, shown
from tasks.retries import PLAIN, RETRIED


@task(name="image", task_run_name="choose the image for {spec.name}", **PLAIN)
async def choose(spec: ModelSpec, placement: Placement, snapshot: FleetSnapshot) -> Image | None:
    """Which image will run, and its digest. Nothing is pulled.

    What the first host has already is taken as it is there, without asking a registry.
    """
    with step("image") as note:
        image, hosts = _image(spec, placement, snapshot)
        if image is None:
            note.say("none: the engine is installed on the host")
            return None
        image = await _pinned(image, hosts[0])
        note.say(f"{image.pinned} ({image.reason})")
        return image


@task(name="image", task_run_name="have the image for {spec.name}", **RETRIED)
async def pull(spec: ModelSpec, placement: Placement, snapshot: FleetSnapshot) -> Image | None:
    """Have the image on every placed host: pulled by its digest where it is not there yet."""
    with step("image") as note:
        image, hosts = _image(spec, placement, snapshot)
        if image is None:
            note.say("none: the engine is installed on the host")
            return None
        deadline = spec.readiness.deadlines.image_seconds
        try:
            async with asyncio.timeout(deadline):
                image = await _pinned(image, hosts[0])
                for host in hosts:
                    await _have(image, host, note, spec)
        except TimeoutError as error:
            detail = f"{image.reference}: not pulled within {deadline} s"
            raise Failure(Cause.IMAGE_PULL_FAILED, detail) from error
        image = await in_thread(_on_host, image, (image.reference,), hosts[0]) or image
        note.say(f"{image.pinned} ({image.reason})")
        return image


async def _have(image: Image, host: HostSnapshot, note: Note, spec: ModelSpec) -> None:
    async def fetch(progress: Progress) -> None:
        await in_thread(
            have_image,
            DockerRuntime(host.address),
            image,
            settings().locks,
            progress,
            credentials=partial(_credentials, host.registries, image.reference),
            wait_seconds=spec.readiness.deadlines.image_seconds,
        )

    await shown(fetch, note, f"pull-{spec.slug}", f"Pulling {image.reference}")


async def _pinned(image: Image, host: HostSnapshot) -> Image:
    """The image where it is: on the host, else in the first registry that answers."""
    places = host.registries.places(image.reference)
    there = await in_thread(_on_host, image, (*places, image.reference), host)
    if there:
        return there
    try:
        found = await in_thread(_find, places, host)
    except Failure as failure:
        if not _may_still_be_pulled(failure, host.registries, places[0]):
            raise
        reason = f"{image.reason}; its digest is not known: {failure.detail}"
        return image.model_copy(update={"reference": places[0], "reason": reason})
    return image.model_copy(update={"reference": found.reference, "digest": found.digest})


def _may_still_be_pulled(failure: Failure, registries: Registries, place: str) -> bool:
    """Whether the daemon may know a way that this process does not: its network, its login."""
    if failure.cause is Cause.REGISTRY_UNAUTHORIZED:
        return registries.login(place) is None
    return failure.cause is Cause.REGISTRY_UNAVAILABLE


def _on_host(image: Image, places: tuple[str, ...], host: HostSnapshot) -> Image | None:
    runtime = DockerRuntime(host.address)
    for place in places:
        if known := runtime.image_identity(place):
            identity, digest = known
            digest = parse_reference(place).digest or digest
            return image.model_copy(
                update={"reference": place, "identity": identity, "digest": digest}
            )
    return None


def _find(places: tuple[str, ...], host: HostSnapshot) -> Found:
    registries = host.registries

    def client(place: str) -> RegistryClient:
        registry = parse_reference(place).registry
        return RegistryClient(
            registry,
            credentials=_credentials(registries, place),
            insecure=registry in registries.insecure,
        )

    return find_first(places, client, host.architecture)


def _credentials(registries: Registries, place: str) -> Credentials | None:
    login = registries.login(place)
    if login is None:
        return None
    password = read_secrets([login.password])[login.password]
    return Credentials(username=login.username, password=password)


def _image(
    spec: ModelSpec, placement: Placement, snapshot: FleetSnapshot
) -> tuple[Image | None, list[HostSnapshot]]:
    """The image of the containers as its publisher names it, and the hosts that need it."""
    seats = [seat for seat in placement.seats if seat.runtime == RuntimeName.DOCKER]
    if not seats:
        return None, []
    hosts = {seat.host: snapshot.host(seat.host) for seat in seats}
    engine, first = ENGINES[placement.engine], seats[0]
    image = image_on(spec, engine, hosts[first.host], first.accelerator_type)
    return image, list({host.address: host for host in hosts.values()}.values())
