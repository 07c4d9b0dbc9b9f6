"""The image of helper containers: on each host once, by its digest, as engines' images are."""

from __future__ import annotations

from functools import partial

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.docker.pulling import have_image
from moorage.adapters.registry.pinning import credentials, identified, pinned
from moorage.adapters.system.parallel import all_at_once
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.images.image import Image
from moorage.inventory.snapshot import HostSnapshot

PULL_SECONDS = 300.0
"""How long a pull may take; the image is small."""


def have_helper(host: HostSnapshot, reference: str, seconds: float) -> str:
    """The name under which a host has the helper's image, with its digest where it has one.

    What the host has is taken as it is, and no registry is asked: a survey comes often. Else it is
    pulled, as an engine's image is.

    Args:
        host: The host: its daemon, its registries, its processors.
        reference: As the fleet names it.
        seconds: How long to wait. A pull that takes longer goes on, and whoever comes next waits
            for that one.

    Raises:
        Failure: `IMAGE_PULL_TIMEOUT`, or what a pull fails with.
    """
    if found := _found(host, reference):
        return found
    (outcome,) = all_at_once(partial(_pulled, host), [reference], seconds)
    if isinstance(outcome, TimeoutError):
        detail = f"{host.name}: {reference} was not there after {seconds:g} s"
        raise Failure(Cause.IMAGE_PULL_TIMEOUT, detail, suggestion=_by_hand(reference))
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _found(host: HostSnapshot, reference: str) -> str:
    images = DockerImages(host.address)
    for place in dict.fromkeys((*host.registries.places(reference), reference)):
        if local := images.find(place):
            digest = next(iter(local.digests), "")
            return _named(_image(place).model_copy(update={"digest": digest}))
    return ""


def _pulled(host: HostSnapshot, reference: str) -> str:
    image = pinned(_image(reference), host)
    have_image(
        DockerImages(host.address),
        image,
        Settings().locks,
        lambda _done, _total: None,
        credentials=partial(credentials, host.registries, image.reference),
        wait_seconds=PULL_SECONDS,
    )
    return _named(identified(image, host))


def _image(reference: str) -> Image:
    return Image(reference=reference, origin=Origin.DEFAULT, reason="helper_image of the fleet")


def _named(image: Image) -> str:
    """Without a digest its name tells more than its id would."""
    return image.pinned if image.digest else image.reference


def _by_hand(reference: str) -> str:
    return f"Have it there before: `docker pull {reference}` on the host, or `docker save | load`."
