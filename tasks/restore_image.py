"""The image of an earlier start: exactly the same again, for restarts and rollbacks."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.docker.pulls import PullSource, ensure_image, has_digest, has_image
from moorage.adapters.registry.pinning import pull_sources
from moorage.adapters.system.threads import variable_scope
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import LaunchPlan
from moorage.images.image import Image
from moorage.inventory.registries import Registries
from moorage.releases.release import Release
from moorage.spec import RuntimeName
from tasks.context import settings

_registries: ContextVar[Registries | None] = ContextVar("registries", default=None)


def registries_scope(registries: Registries) -> AbstractContextManager[None]:
    """Let restarts of this block pull their images from a fleet's registries, with its accounts."""
    return variable_scope(_registries, registries)


def restore_image(release: Release | None, part: LaunchPlan) -> None:
    """Have exactly the image of a release on the hosts where a part of it is restarted.

    Uses the registries of `registries_scope`, else the recorded one with Docker's own login. Raises
    `IMAGE_MISSING` when neither its registry nor the host still has it.
    """
    with missing_for_good():
        for images, exact, sources, seconds in _exact_pulls(release, part):
            ensure_image(images, exact, settings().locks, sources=sources, wait_seconds=seconds)


def lacks_image(release: Release | None, part: LaunchPlan) -> bool:
    """Whether a host where a part is restarted lacks the release's image, and has to pull it.

    Raises `IMAGE_MISSING` when a host lacks an image that no registry has.
    """
    with missing_for_good():
        return not all(
            has_image(images, exact, sources) or has_digest(images, exact)
            for images, exact, sources, _ in _exact_pulls(release, part)
        )


def exact_image(image: Image, places: Mapping[str, str]) -> Image | None:
    """The image that hosts may pull to have this one again; None = they have it, and no digest.

    By digest alone: on a host the tag may name a newer image, and must keep it. An image without a
    digest was built on its host: in a registry its name is somebody else's. Raises `IMAGE_MISSING`
    when a host lacks that.

    Args:
        places: Names of the hosts, by address.
    """
    if image.digest:
        return image.without_tag()
    for address, host in sorted(places.items()):
        if DockerImages(address).find(image.pinned) is None:
            detail = f"{image.reference}: {image.pinned} is not on {host} any more"
            raise Failure(Cause.IMAGE_MISSING, detail)
    return None


@contextmanager
def missing_for_good() -> Iterator[None]:
    """Say what helps when the image of an earlier start is missing."""
    try:
        yield
    except Failure as failure:
        if failure.cause != Cause.IMAGE_MISSING:
            raise
        advice = "Deploy its spec again: the rules of today choose an image for it."
        raise Failure(failure.cause, failure.detail, suggestion=advice) from None


def _exact_pulls(
    release: Release | None, part: LaunchPlan
) -> Iterator[tuple[DockerImages, Image, Sequence[PullSource], float]]:
    """For each daemon of a part, the image that it may pull, from where, and its deadline."""
    if release is None or release.image is None:
        return
    own = [one for one in part.containers if one.runtime == RuntimeName.DOCKER]
    places = {one.address: one.host for one in own}
    if exact := exact_image(release.image, places):
        sources = pull_sources(exact, _registries.get() or Registries.defaults())
        seconds = release.spec.readiness.deadlines.image_seconds
        for address in sorted(places):
            yield DockerImages(address), exact, sources, seconds
