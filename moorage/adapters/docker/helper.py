"""Helper containers: short programs that inspect a host, or work on it, and their image."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from docker.errors import APIError, DockerException, ImageNotFound
from docker.models.containers import Container
from docker.types import DeviceRequest, Mount
from requests.exceptions import ConnectionError, ReadTimeout, RequestException

from moorage.adapters.docker.client import connect, must_heed_requests
from moorage.adapters.docker.images import DockerImages, have_image
from moorage.adapters.hosts.observation import log_of_container
from moorage.adapters.registry.pinning import credentials, identified, pinned
from moorage.adapters.system.parallel import all_at_once
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.common.units import MIB
from moorage.common.values import Origin
from moorage.images.image import Image
from moorage.inventory.access import Access
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.vendors import NOTHING, Handed

LABEL_HELPER = "moorage.helper"
"""On every helper container, with its purpose."""

MEMORY = 512 * MIB

ASK_SECONDS = 30
"""How long a daemon may be silent, though the program may work for hours."""


PULL_SECONDS = 300.0
"""How long a pull may take; the image is small."""


def run_helper(
    access: Access,
    image: str,
    command: Sequence[str],
    *,
    purpose: str,
    seconds: int,
    handed: Handed = NOTHING,
    mounts: Sequence[Mount] = (),
    writes: bool = False,
) -> str:
    """Run a program on a host to its end; gives what it wrote.

    It sees the host's network, has no privileges, and writes nowhere but to its mounts.

    Args:
        access: The way to the host's daemon.
        image: An image that is there.
        command: The program.
        purpose: What it is for, as a label.
        seconds: How long it may take; a daemon that is gone is noticed long before.
        handed: What it gets of the host, to ask about its accelerators.
        mounts: More directories.
        writes: Whether it has root's usual rights on them, to change what others own.

    Raises:
        Failure: `IMAGE_MISSING` without the image, `ACCELERATOR_RUNTIME_MISSING` where the host
            cannot hand that over, `RUNTIME_UNAVAILABLE` when it fails.
        DockerException: When the daemon does not answer.
    """
    client = connect(access, min(seconds, ASK_SECONDS))
    if handed.gpus:
        must_heed_requests(client, access.machine)
    own = [Mount(place, place, type="bind", read_only=True) for place in handed.mounts]
    try:
        container = client.containers.create(
            image,
            entrypoint=list(command[:1]),
            command=list(command[1:]),
            name=f"moorage-{purpose}-{uuid4().hex[:12]}",
            labels={LABEL_HELPER: purpose},
            mounts=[*own, *mounts],
            **_rights(handed, writes=writes),
        )
    except ImageNotFound as error:
        raise Failure(Cause.IMAGE_MISSING, f"{image} is not on the host") from error
    try:
        return _finished(container, seconds)
    except APIError as error:
        lacking = handed != NOTHING
        cause = Cause.ACCELERATOR_RUNTIME_MISSING if lacking else Cause.RUNTIME_UNAVAILABLE
        raise Failure(cause, f"{purpose}: {error.explanation or error}") from error
    finally:
        # Who removes what is left over knows it by its label; what it said counts.
        with contextlib.suppress(DockerException, RequestException):
            container.remove(force=True)


def start_told(container: Container, line: str) -> None:
    """Start a container that reads one line: what may hold secrets goes through its input alone."""
    stream = container.attach_socket(params={"stdin": 1, "stream": 1})
    container.start()
    raw: Any = getattr(stream, "_sock", stream)
    raw.sendall(line.encode())
    stream.close()


def _rights(handed: Handed, *, writes: bool) -> dict[str, Any]:
    """What the container may do and use, in the words of Docker's API."""
    gpus = [DeviceRequest(count=-1, capabilities=[["gpu", "utility"]])] if handed.gpus else []
    return {
        "network_mode": "host",
        "read_only": True,
        "cap_drop": [] if writes else ["ALL"],
        "security_opt": ["no-new-privileges"],
        "mem_limit": MEMORY,
        "device_requests": gpus,
        "devices": list(handed.devices),
        "environment": handed.environment,
    }


def _finished(container: Container, seconds: int) -> str:
    container.start()
    code = _exit_code(container, seconds)
    said = log_of_container(container)
    if code:
        raise Failure(
            Cause.RUNTIME_UNAVAILABLE, f"{container.name} ended with {code}: {said[-500:]}"
        )
    return said


def _exit_code(container: Container, seconds: float) -> int:
    """Wait for the end in short questions: a daemon that is gone does not answer them.

    Raises:
        RequestException: When it is gone, or when the program takes too long.
    """
    until = time.monotonic() + seconds
    while True:
        left = until - time.monotonic()
        try:
            return int(container.wait(timeout=max(1.0, min(left, ASK_SECONDS)))["StatusCode"])
        except (ReadTimeout, ConnectionError):
            if left <= ASK_SECONDS:
                raise
            container.reload()


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
