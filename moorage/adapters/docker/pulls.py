"""Pulls of images: what a host lacks, from the first source that has it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.system.file_locks import locked
from moorage.common.failures import Cause, Failure
from moorage.images.image import Image
from moorage.spec.image_reference import parse_reference

if TYPE_CHECKING:
    from moorage.adapters.registry.connection import Credentials

OF_REGISTRY = {
    Cause.IMAGE_MISSING,
    Cause.IMAGE_PULL_FAILED,
    Cause.REGISTRY_RATE_LIMITED,
    Cause.REGISTRY_UNAUTHORIZED,
    Cause.REGISTRY_UNAVAILABLE,
    Cause.REGISTRY_UNTRUSTED,
}
"""Causes of a failed pull after which another registry may serve the same digest."""


class PullSource(NamedTuple):
    """A reference of an image in one registry.

    Attributes:
        credentials: Returns the account of the registry, if any; called before a pull.
    """

    reference: str
    credentials: Callable[[], Credentials | None]


def ensure_image(
    images: DockerImages,
    image: Image,
    locks: Path,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    *,
    sources: Sequence[PullSource],
    wait_seconds: float,
) -> None:
    """Pull an image that the host lacks, from the first source that has it; call it in a thread.

    A concurrent call for the same image and host waits for the pull, then finds the image. Its
    digest, if known, selects the image, so that every host gets the same one.

    Args:
        locks: Folder that all flows of this machine share.
        sources: Its references, the preferred one first; several only if its digest is known.
        wait_seconds: How long to wait for the pull of another process, and each pull may take.

    Raises:
        Failure: `IMAGE_MISSING`, `IMAGE_PULL_FAILED` and the like, or `IMAGE_PULL_TIMEOUT`. When
            no source has it, the cause of the last one with all reasons.
    """
    if has_image(images, image, sources):
        return
    locks.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(f"{images.address} {image.portable}".encode()).hexdigest()[:24]
    with locked(locks / f"pull-{name}.lock", wait_seconds) as is_ours:
        if not is_ours:
            detail = f"{image.reference}: another pull of it did not end within {wait_seconds:g} s"
            raise Failure(Cause.IMAGE_PULL_TIMEOUT, detail)
        if has_image(images, image, sources):
            return
        try:
            _pull_first(images, image, sources, on_progress, wait_seconds)
        except Failure:
            if not has_digest(images, image):  # one from another registry will do
                raise


def has_image(images: DockerImages, image: Image, sources: Sequence[PullSource]) -> bool:
    """Whether a host has an image under the name that one of its sources gives it."""
    return any(map(images.find, {_at(image, one).portable for one in sources}))


def has_digest(images: DockerImages, image: Image) -> bool:
    """Whether a host has an image with the same digest, from whatever registry."""
    return bool(image.digest) and images.find(image.portable, by_digest=True) is not None


def _at(image: Image, source: PullSource) -> Image:
    return image.model_copy(update={"reference": source.reference})


def _pull_first(
    images: DockerImages,
    image: Image,
    sources: Sequence[PullSource],
    on_progress: Callable[[int, int], None],
    seconds: float,
) -> None:
    failures: list[Failure] = []
    for source in sources:
        wanted = _at(image, source).portable
        try:
            images.pull(wanted, on_progress, source.credentials(), seconds)
        except Failure as failure:
            if failure.cause not in OF_REGISTRY or source is sources[-1]:
                details = "; ".join(one.detail for one in (*failures, failure))
                raise Failure(failure.cause, details, suggestion=failure.suggestion) from failure
            failures.append(failure)
            continue
        if wanted != source.reference and not parse_reference(source.reference).digest:
            images.tag(wanted, source.reference)
        return
