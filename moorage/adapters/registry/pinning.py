"""Pins images: the digest of a tag, from its registry or from the host that has it.

A registry's client is imported when a registry is asked: most images are on their hosts already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from moorage.adapters.docker.images import DockerImages, LocalImage
from moorage.adapters.docker.pulls import PullSource, ensure_image
from moorage.adapters.secrets import read_secrets
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.images.image import Image
from moorage.inventory.registries import Registries
from moorage.inventory.snapshot import HostSnapshot
from moorage.spec.image_reference import parse_reference, repository

if TYPE_CHECKING:
    from moorage.adapters.registry.connection import Credentials
    from moorage.adapters.registry.registry import RegistryClient, RegistryImage

UNCHECKED = "; its registry did not answer, it is taken as the host has it:"
MOVED = "; its tag was moved since the host pulled it"
LOCAL = "; its registry does not have it: it was built or loaded on the host"
OTHER = (
    "; its registry has another image under this tag, and not the host's, which is used: to take"
    " the registry's, remove it on the host (`docker rmi`) or name a digest"
)

AWAY = frozenset({Cause.REGISTRY_UNAVAILABLE, Cause.REGISTRY_RATE_LIMITED})
"""Causes after which the next registry is tried; an untrusted certificate is not among them."""

UNKNOWN_THERE = frozenset({Cause.IMAGE_MISSING, Cause.REGISTRY_UNAUTHORIZED})
"""Causes for a digest that a registry lacks; Docker Hub asks for a login instead of saying so."""


def pin_image(image: Image, host: HostSnapshot) -> Image:
    """An image with its digest, at the first of its references that has it.

    The registry decides the image of a tag, unless it does not have the host's image at all: that
    was built or loaded there. An image without a digest, or named by one, needs no registry. If no
    registry answers, the host's own copy is used, and the reason says so. Call it in a thread.

    Raises:
        Failure: `IMAGE_MISSING`, `NO_IMAGE` for a host of another architecture, or a registry's
            failure, unless the host's daemon may still be able to pull.
    """
    found = _pin(image, host)
    if found.reference == image.reference:
        return found
    return found.model_copy(update={"original": image.as_written})


def present_image(image: Image, host: HostSnapshot, wait_seconds: float) -> Image:
    """The image on a host, pinned and identified; it is pulled unless the host has it.

    Raises:
        Failure: As `pin_image`, `ensure_image` and `identify_image`.
    """
    pinned = pin_image(image, host)
    ensure_image(
        DockerImages(host.address),
        pinned,
        Settings().locks,
        sources=pull_sources(pinned, host.registries),
        wait_seconds=wait_seconds,
    )
    return identify_image(pinned, host)


def pull_sources(image: Image, registries: Registries) -> tuple[PullSource, ...]:
    """Where hosts with these registries may pull an image; last, where it was pinned.

    An image without a digest has one source: a tag may stand for different images elsewhere.
    """
    places = registries.places(image.as_written) if image.digest else ()
    return tuple(
        PullSource(place, partial(credentials, registries, place))
        for place in dict.fromkeys((*places, image.reference))
    )


def identify_image(image: Image, host: HostSnapshot) -> Image:
    """An image as a host has it, with its local id and the digest by which the host knows it.

    A host that got it from an archive knows it by its local id alone. An image without a digest may
    be another one under the same name there.

    Raises:
        Failure: `NO_IMAGE` when it is built for another architecture.
    """
    images = DockerImages(host.address)
    if local := images.find(image.pinned, by_digest=True):
        digest = image.digest or next(iter(local.digests), "")
    else:
        name = image.identity if image.digest else image.reference
        local, digest = images.find(name) if name else None, ""
    if local is None:
        return image
    update = {"identity": local.identity, "digest": digest, "lacks": local.lacks}
    return _require_architecture(image, local, host).model_copy(update=update)


def current_digest(image: Image, registries: Registries) -> str:
    """The digest of an image's tag, as a deploy would take it; empty = no registry answers."""
    try:
        places = registries.places(image.as_written)
        return _find(places, registries, known=(image.digest,), attempts=1).digest
    except Failure:
        return ""


def credentials(registries: Registries, place: str) -> Credentials | None:
    """The account for a reference's registry, with its password; None = not configured."""
    login = registries.login(place)
    if login is None:
        return None
    from moorage.adapters.registry.connection import Credentials  # noqa: PLC0415  (see above)

    password = read_secrets([login.password])[login.password]
    return Credentials(username=login.username, password=password)


def _pin(image: Image, host: HostSnapshot) -> Image:
    places = host.registries.places(image.reference)
    for place in dict.fromkeys((*places, image.reference)):
        if local := DockerImages(host.address).find(place):
            here = _require_architecture(image, local, host).model_copy(update={"reference": place})
            return _refresh(here, local, places, host)
    try:
        found = _find(places, host.registries, host.architecture)
    except Failure as failure:
        if not _may_be_pulled(failure, host.registries, places[0]):
            raise
        reason = f"{image.reason}; its digest is not known: {failure.detail}"
        return image.model_copy(update={"reference": places[0], "reason": reason})
    return image.model_copy(update={"reference": found.reference, "digest": found.digest})


def _refresh(image: Image, local: LocalImage, places: tuple[str, ...], host: HostSnapshot) -> Image:
    """The host's image, or the registry's image if the tag has moved to it."""
    named = parse_reference(image.reference).digest
    digest = named or next(iter(local.digests), "")
    update = {"identity": local.identity, "digest": digest, "lacks": local.lacks}
    image = image.model_copy(update=update)
    if named or not digest:
        return image
    try:
        return _compare(image, local, places, host)
    except Failure as failure:
        reason = f"{image.reason}{UNCHECKED} {failure.detail}"
        return image.model_copy(update={"reason": reason})


def _compare(image: Image, local: LocalImage, places: tuple[str, ...], host: HostSnapshot) -> Image:
    """The host's image or the registry's, by what the registry has under the tag.

    An image that the host has from elsewhere, as from before a mirror was configured, gets its
    reference in the registry: other hosts pull it from there.

    Raises:
        Failure: When the registry does not answer, or no longer has the tag of a pulled image.
    """
    try:
        known = {"known": local.digests, "attempts": 1}
        found = _find(places, host.registries, host.architecture, **known)
    except Failure as failure:
        if failure.cause is not Cause.IMAGE_MISSING or _is_from_registry(local, places, host):
            raise
        return image.model_copy(update={"digest": "", "reason": f"{image.reason}{LOCAL}"})
    if found.digest in local.digests:
        place = image.reference if image.reference in places else found.reference
        return image.model_copy(update={"reference": place, "digest": found.digest})
    if not _is_from_registry(local, places, host):
        return image.model_copy(update={"digest": "", "reason": f"{image.reason}{OTHER}"})
    moved = {"reference": found.reference, "digest": found.digest, "identity": "", "lacks": ()}
    return image.model_copy(update={**moved, "reason": f"{image.reason}{MOVED}"})


def _is_from_registry(local: LocalImage, places: tuple[str, ...], host: HostSnapshot) -> bool:
    """Whether the host's image came from the registry: only such a tag can have moved."""
    if local.is_pulled:
        return True
    for digest in local.digests:
        named = tuple(f"{repository(place)}@{digest}" for place in places)
        try:
            _find(named, host.registries, host.architecture, known=local.digests, attempts=1)
            return True
        except Failure as failure:
            if failure.cause not in UNKNOWN_THERE:
                raise
    return False


def _find(
    places: tuple[str, ...], registries: Registries, architecture: str = "", **options: Any
) -> RegistryImage:
    from moorage.adapters.registry.registry import RegistryClient  # noqa: PLC0415  (see above)

    def client(place: str) -> RegistryClient:
        registry = parse_reference(place).registry
        insecure = registry in registries.insecure
        account = credentials(registries, place)
        return RegistryClient(registry, credentials=account, insecure=insecure, **options)

    return find_first(places, client, architecture)


def _require_architecture(image: Image, local: LocalImage, host: HostSnapshot) -> Image:
    if local.architecture in ("", host.architecture):
        return image
    detail = f"{image.reference} is built for {local.architecture}, the host is {host.architecture}"
    raise Failure(Cause.NO_IMAGE, detail)


def _may_be_pulled(failure: Failure, registries: Registries, place: str) -> bool:
    """Whether the daemon may have network, login or trust that this process lacks."""
    if failure.cause is Cause.REGISTRY_UNAUTHORIZED:
        return registries.login(place) is None
    return failure.cause in AWAY | {Cause.REGISTRY_UNTRUSTED}


def find_first(
    places: Sequence[str], client_for: Callable[[str], RegistryClient], architecture: str = ""
) -> RegistryImage:
    """The image at the first of its references, preferred ones first, whose registry answers.

    Args:
        architecture: The processors that it has to be built for; empty = any.

    Raises:
        Failure: That of the first registry that answers; when none does, the cause of the first
            with all reasons; `NO_IMAGE` when the image is not built for the architecture.
    """
    failures: list[Failure] = []
    for place in places:
        try:
            found = client_for(place).find(place)
        except Failure as failure:
            if failure.cause not in AWAY:
                raise
            failures.append(failure)
            continue
        if architecture and found.platforms and f"linux/{architecture}" not in found.platforms:
            built = ", ".join(found.platforms)
            detail = f"{found.reference} is built for {built}, the host is {architecture}"
            raise Failure(Cause.NO_IMAGE, detail)
        return found
    raise Failure(failures[0].cause, "; ".join(failure.detail for failure in failures))
