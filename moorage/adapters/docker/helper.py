"""Helper containers: short programs that inspect a host, or work on it, and their image."""

import contextlib
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

from docker.errors import APIError, ImageNotFound
from docker.models.containers import Container
from docker.types import DeviceRequest, Mount
from requests.exceptions import ConnectionError, ReadTimeout

from moorage.adapters.docker.client import DAEMON_ERRORS, connect, require_device_requests
from moorage.adapters.docker.images import DockerImages
from moorage.adapters.hosts.observation import log_of_container
from moorage.adapters.registry.pinning import present_image
from moorage.adapters.system.parallel import map_parallel
from moorage.common.failures import Cause, Failure
from moorage.common.units import MIB
from moorage.common.values import Origin
from moorage.engines.labels import LABEL_HELPER
from moorage.images.image import Image
from moorage.inventory.access import Access
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.vendors import NOTHING, Handed

MEMORY = 512 * MIB

ASK_SECONDS = 30
"""How long a daemon may be silent, although the program may run for hours."""

PYTHON = ("python3", "-I", "-c")
"""Runs a program that needs only Python's standard library."""

PULL_SECONDS = 300.0
"""How long a pull may take; the image is small."""


class HelperJob(NamedTuple):
    """A program to run on a host.

    Attributes:
        image: An image that the host has.
        seconds: Limit for the program. A lost daemon is noticed much earlier.
        handed: Devices and directories of the host that the program needs for accelerators.
        writes: Whether the program has root's usual capabilities, to change other users' files.
    """

    image: str
    command: Sequence[str]
    purpose: str
    seconds: int
    handed: Handed = NOTHING
    mounts: Sequence[Mount] = ()
    writes: bool = False


def run_helper(access: Access, job: HelperJob) -> str:
    """Run a program on a host to its end, and return its output.

    The program uses the host's network, has no privileges, and can write to its mounts only.

    Raises:
        Failure: `IMAGE_MISSING` without the image, `ACCELERATOR_RUNTIME_MISSING` when the host
            cannot provide `handed`, `RUNTIME_UNAVAILABLE` when the program fails.
        DockerException: When the daemon does not answer.
    """
    client = connect(access, min(job.seconds, ASK_SECONDS))
    if job.handed.gpus:
        require_device_requests(client, access.machine)
    try:
        container = client.containers.create(**_arguments(job))
    except ImageNotFound as error:
        raise Failure(Cause.IMAGE_MISSING, f"{job.image} is not on the host") from error
    try:
        container.start()
        code = _exit_code(container, job.seconds)
        output = log_of_container(container, whole_lines=True)
    except APIError as error:
        lacking = job.handed != NOTHING
        cause = Cause.ACCELERATOR_RUNTIME_MISSING if lacking else Cause.RUNTIME_UNAVAILABLE
        raise Failure(cause, f"{job.purpose}: {error.explanation or error}") from error
    finally:
        # A leftover container is removed later by its label. Only its output matters here.
        with contextlib.suppress(*DAEMON_ERRORS):
            container.remove(force=True)
    if code:
        detail = f"{container.name} ended with {code}: {output[-500:]}"
        raise Failure(Cause.RUNTIME_UNAVAILABLE, detail)
    return output


def start_with_input(container: Container, line: str) -> None:
    """Start a container and write one line to its input, the only channel for secrets."""
    stream = container.attach_socket(params={"stdin": 1, "stream": 1})
    container.start()
    raw: Any = getattr(stream, "_sock", stream)
    raw.sendall(line.encode())
    stream.close()


def helper_options(
    purpose: str, command: Sequence[str], *, reads: bool = False, writes: bool = False
) -> dict[str, Any]:
    """Docker arguments that all helper containers share; the parameters are as in `HelperJob`.

    `reads` says whether the program reads other users' files, such as a store that only its owner
    can enter.
    """
    return {
        "entrypoint": list(command[:1]),
        "command": list(command[1:]),
        "name": f"moorage-{purpose}-{uuid4().hex[:12]}",
        "labels": {LABEL_HELPER: purpose},
        "network_mode": "host",
        "read_only": True,
        "cap_drop": [] if writes else ["ALL"],
        # Not DAC_READ_SEARCH, which opens files outside of the mounts, too.
        "cap_add": ["DAC_OVERRIDE"] if reads else [],
        "security_opt": ["no-new-privileges"],
        "mem_limit": MEMORY,
        # The library would add the proxies of this machine's ~/.docker/config.json, with passwords.
        "use_config_proxy": False,
    }


def _arguments(job: HelperJob) -> dict[str, Any]:
    handed = job.handed
    own = [Mount(place, place, type="bind", read_only=True) for place in handed.mounts]
    gpus = [DeviceRequest(count=-1, capabilities=[["gpu", "utility"]])] if handed.gpus else []
    return {
        **helper_options(job.purpose, job.command, reads=bool(job.mounts), writes=job.writes),
        "image": job.image,
        "mounts": [*own, *job.mounts],
        "device_requests": gpus,
        "runtime": handed.runtime or None,
        "devices": list(handed.devices),
        "environment": handed.environment,
    }


def _exit_code(container: Container, seconds: float) -> int:
    """Wait for the container's exit in short requests, so that a lost daemon is noticed.

    Raises:
        RequestException: When the daemon is lost, or the program takes too long.
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


def ensure_helper_image(host: HostSnapshot, reference: str, seconds: float) -> str:
    """The reference of the helper's image on a host, with its digest if it has one.

    A present image is used without a request to the registry, because surveys are frequent.

    Args:
        seconds: How long to wait. A longer pull continues, and the next caller waits for it.

    Raises:
        Failure: `IMAGE_PULL_TIMEOUT`, or the failure of the pull.
    """
    if found := _present_image(host, reference):
        return found
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


def _present_image(host: HostSnapshot, reference: str) -> str:
    images = DockerImages(host.address)
    for place in dict.fromkeys((*host.registries.places(reference), reference)):
        if local := images.find(place):
            digest = next(iter(local.digests), "")
            return _image(place).model_copy(update={"digest": digest}).portable
    return ""


def _image(reference: str) -> Image:
    return Image(reference=reference, origin=Origin.DEFAULT, reason="helper_image of the fleet")
