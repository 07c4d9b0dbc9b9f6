"""The image of helper containers on a host."""

from contextlib import nullcontext
from functools import partial

from moorage.adapters.docker.connection import READ_SECONDS, Daemon, connection
from moorage.adapters.docker.image_list import digests_of, find_image
from moorage.adapters.system.parallel import map_parallel
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.images.image import Image
from moorage.inventory.snapshot import HostSnapshot

PULL_SECONDS = 300.0
"""How long a pull may take; the image is small."""


def ensure_helper_image(
    host: HostSnapshot, reference: str, seconds: float, daemon: Daemon | None = None
) -> str:
    """The reference of the helper's image on a host, with its digest if it has one.

    A present image is used without a request to the registry, because surveys are frequent.

    Args:
        seconds: How long to wait. A longer pull continues, and the next caller waits for it.
        daemon: A connection to the host's daemon; None = one is opened.

    Raises:
        Failure: `IMAGE_PULL_TIMEOUT`, or the failure of the pull. Through a given connection the
            daemon's own errors are those of `Daemon`.
    """
    with nullcontext(daemon) if daemon else connection(host.address, READ_SECONDS) as asked:
        asked.limit(READ_SECONDS)
        if found := _present_image(asked, host, reference):
            return found
        asked.close()  # idle for as long as a pull takes, the daemon might close it
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


def _present_image(daemon: Daemon, host: HostSnapshot, reference: str) -> str:
    for place in dict.fromkeys((*host.registries.places(reference), reference)):
        if found := find_image(daemon, place):
            digest = next(iter(digests_of(found, place)), "")
            return _image(place).model_copy(update={"digest": digest}).portable
    return ""


def _image(reference: str) -> Image:
    return Image(reference=reference, origin=Origin.DEFAULT, reason="helper_image of the fleet")
