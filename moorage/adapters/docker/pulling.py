"""Having an image on a host: one pull at a time for each image and host of this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.registry.auth import Credentials
from moorage.common.failures import Cause, Failure
from moorage.images.image import Image
from moorage.spec.image_reference import parse_reference


def have_image(
    images: DockerImages,
    image: Image,
    locks: Path,
    on_progress: Callable[[int, int], None],
    *,
    credentials: Callable[[], Credentials | None],
    wait_seconds: float,
) -> None:
    """Pull an image where the host has it not; call it in a thread.

    Whoever wants the same image on the same host meanwhile waits for the pull and then finds it.

    Args:
        images: The images of the host's daemon.
        image: By digest where that is known, so that every host gets the same.
        locks: Folder that all flows of this machine share.
        on_progress: Told the bytes, done and known so far.
        credentials: Gives the account of the registry, if one is configured; asked before a pull.
        wait_seconds: How long to wait for somebody else's pull.

    Raises:
        Failure: `IMAGE_MISSING`, `IMAGE_PULL_FAILED` and the like, or `IMAGE_PULL_TIMEOUT`.
    """
    if _is_there(images, image):
        return
    locks.mkdir(parents=True, exist_ok=True)
    wanted = _wanted(image)
    name = hashlib.sha256(f"{images.address} {wanted}".encode()).hexdigest()[:24]
    try:
        with FileLock(locks / f"pull-{name}.lock", timeout=wait_seconds):
            if _is_there(images, image):
                return
            images.pull(wanted, on_progress, credentials())
            if wanted != image.reference and not parse_reference(image.reference).digest:
                images.tag(wanted, image.reference)
    except Timeout as error:
        detail = f"{image.reference}: another pull of it did not end within {wait_seconds:g} s"
        raise Failure(Cause.IMAGE_PULL_TIMEOUT, detail) from error


def _is_there(images: DockerImages, image: Image) -> bool:
    return images.find(_wanted(image)) is not None


def _wanted(image: Image) -> str:
    """By digest where the registry named one; what only this host has goes by its name."""
    return image.pinned if image.digest else image.reference
