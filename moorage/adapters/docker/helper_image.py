"""The image of helper containers on a host."""

from contextlib import nullcontext
from functools import partial
from http.client import HTTPConnection

from moorage.adapters.docker.connection import connection
from moorage.adapters.docker.image_list import digests_of, find_image
from moorage.adapters.system.parallel import map_parallel
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.images.image import Image
from moorage.inventory.snapshot import HostSnapshot

ANSWER_SECONDS = 10
PULL_SECONDS = 300.0
"""How long a pull may take; the image is small."""


def ensure_helper_image(
    host: HostSnapshot, reference: str, seconds: float, daemon: HTTPConnection | None = None
) -> str:
    """The reference of the helper's image on a host, with its digest if it has one.

    A present image is used without a request to the registry, because surveys are frequent.

    Args:
        seconds: How long to wait. A longer pull continues, and the next caller waits for it.
        daemon: A connection to the host's daemon; None = one is opened.

    Raises:
        Failure: `IMAGE_PULL_TIMEOUT`, or the failure of the pull.
    """
    opened = nullcontext(daemon) if daemon else connection(host.address, ANSWER_SECONDS)
    with opened as asked:
        if found := _present_image(asked, host, reference):
            return found
    # Seldom needed, and it imports Docker's own client.
    from moorage.adapters.registry.pinning import present_image  # noqa: PLC0415

    pull = partial(present_image, host=host, wait_seconds=PULL_SECONDS)
    (outcome,) = map_parallel(pull, [_image(reference)], seconds)
    if isinstance(outcome, TimeoutError):
        raise Failure(
            Cause.IMAGE_PULL_TIMEOUT,
            f"{host.name}: {reference} was not there after {seconds:g} s",
            suggestion=f"Have it there before: `docker pull {reference}` on the host, or"
            " `docker save | load`.",
        )
    if isinstance(outcome, Exception):
        raise outcome
    return outcome.portable


def _present_image(daemon: HTTPConnection, host: HostSnapshot, reference: str) -> str:
    for place in dict.fromkeys((*host.registries.places(reference), reference)):
        if found := find_image(daemon, place):
            digest = next(iter(digests_of(found, place)), "")
            return _image(place).model_copy(update={"digest": digest}).portable
    return ""


def _image(reference: str) -> Image:
    return Image(reference=reference, origin=Origin.DEFAULT, reason="helper_image of the fleet")
