"""Helper containers: short programs that inspect a host, or work on it."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from typing import Any, NamedTuple
from uuid import uuid4

from moorage.adapters.docker.connection import (
    FRAME,
    NOT_FOUND,
    Daemon,
    DaemonError,
    connection,
)
from moorage.adapters.docker.errors import NO_MOUNT
from moorage.common.failures import Cause, Failure
from moorage.common.units import MIB
from moorage.engines.labels import LABEL_HELPER
from moorage.inventory.access import Access
from moorage.inventory.devices import require_device_requests
from moorage.inventory.survey.vendors import NOTHING, Handed

MEMORY = 512 * MIB

ASK_SECONDS = 30
"""How long a daemon may be silent, although the program may run for hours."""

PYTHON = ("python3", "-I", "-c")
"""Runs a program that needs only Python's standard library."""


class FolderMissing(Failure):
    """The host has no directory that a helper wants to mount."""

    def __init__(self, detail: str) -> None:
        super().__init__(Cause.RUNTIME_UNAVAILABLE, detail)


class HelperJob(NamedTuple):
    """A program to run on a host.

    Attributes:
        image: An image that the host has.
        seconds: Limit for the program. A lost daemon is noticed much earlier.
        handed: Devices and directories of the host that the program needs for accelerators.
        folders: Directories of the host by their places in the container.
        writes: Whether it may write to these folders, and change files of other users there.
    """

    image: str
    command: Sequence[str]
    purpose: str
    seconds: int
    handed: Handed = NOTHING
    folders: Mapping[str, str] = {}
    writes: bool = False


def run_helper(access: Access, job: HelperJob) -> str:
    """Run a program on a host to its end, and return its output.

    Raises:
        Failure: As `run_with` and `connection`.
    """
    with connection(access.url, ASK_SECONDS) as daemon:
        return run_with(daemon, access.machine, job)


def run_with(daemon: Daemon, host: str, job: HelperJob) -> str:
    """Run a program to its end through a connection to the daemon of a host.

    The program uses the host's network, has no privileges, and can write to its folders only.

    Raises:
        Failure: `IMAGE_MISSING` without the image, `ACCELERATOR_RUNTIME_MISSING` when the host
            cannot provide `handed`, `RUNTIME_UNAVAILABLE` when the program fails.
        FolderMissing: When the host lacks one of the folders.
        OSError: When the program does not end in time; other errors of the daemon as `Daemon`.
    """
    daemon.limit(min(job.seconds, ASK_SECONDS))
    if job.handed.gpus:
        require_device_requests(daemon.get("/version"), host)
    name = helper_name(job.purpose)
    place = f"/containers/{_create(daemon, name, job)}"
    try:
        daemon.send("POST", f"{place}/start")
        code = _exit_code(daemon, place, job.seconds)
        output = _output(daemon, place)
    except DaemonError as error:
        lacking = job.handed != NOTHING
        cause = Cause.ACCELERATOR_RUNTIME_MISSING if lacking else Cause.RUNTIME_UNAVAILABLE
        raise Failure(cause, f"{job.purpose}: {error.explanation}") from error
    finally:
        # A leftover container is removed later by its label. Only its output matters here.
        with suppress(OSError, HTTPException, ValueError):
            daemon.limit(ASK_SECONDS)
            daemon.send("DELETE", f"{place}?force=1")
    if code:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{name} ended with {code}: {output[-500:]}")
    return output


def helper_name(purpose: str) -> str:
    """A new name for a helper container."""
    return f"moorage-{purpose}-{uuid4().hex[:12]}"


def helper_config(
    image: str, purpose: str, command: Sequence[str], *, reads: bool = False, writes: bool = False
) -> dict[str, Any]:
    """Configuration of a helper container, in the words of Docker's API.

    Nothing of this machine gets into it, such as the proxies of `~/.docker/config.json`.

    Args:
        reads: Whether the program reads other users' files, such as a store that only its owner
            can enter.
        writes: Whether it has root's usual capabilities, to change other users' files.
    """
    return {
        "Image": image,
        "Entrypoint": list(command[:1]),
        "Cmd": list(command[1:]),
        "Labels": {LABEL_HELPER: purpose},
        "HostConfig": {
            "NetworkMode": "host",
            "ReadonlyRootfs": True,
            "CapDrop": [] if writes else ["ALL"],
            # Not DAC_READ_SEARCH, which opens files outside of the mounts, too.
            "CapAdd": ["DAC_OVERRIDE"] if reads else [],
            "SecurityOpt": ["no-new-privileges"],
            "Memory": MEMORY,
        },
    }


def bind_mount(folder: str, place: str, *, writable: bool = False) -> dict[str, Any]:
    """A directory of the host at a place in a container."""
    return {"Type": "bind", "Source": folder, "Target": place, "ReadOnly": not writable}


def _create(daemon: Daemon, name: str, job: HelperJob) -> str:
    try:
        made = daemon.send("POST", f"/containers/create?name={name}", _config(job))
    except DaemonError as error:
        if error.status == NOT_FOUND and "image" in error.explanation.lower():
            raise Failure(Cause.IMAGE_MISSING, f"{job.image} is not on the host") from error
        if NO_MOUNT in error.explanation:
            raise FolderMissing(error.explanation) from error
        raise
    return str(made["Id"])


def _config(job: HelperJob) -> dict[str, Any]:
    handed = job.handed
    config = helper_config(
        job.image, job.purpose, job.command, reads=bool(job.folders), writes=job.writes
    )
    mounts = [bind_mount(place, place) for place in handed.mounts]
    mounts += [bind_mount(at, to, writable=job.writes) for to, at in job.folders.items()]
    gpus = [{"Count": -1, "Capabilities": [["gpu", "utility"]]}] if handed.gpus else []
    nodes = [
        {"PathOnHost": node, "PathInContainer": node, "CgroupPermissions": "rwm"}
        for node in handed.devices
    ]
    more = {"Mounts": mounts, "DeviceRequests": gpus, "Devices": nodes, "Runtime": handed.runtime}
    return {
        **config,
        "Env": [f"{key}={value}" for key, value in handed.environment.items()],
        "HostConfig": {**config["HostConfig"], **more},
    }


def _exit_code(daemon: Daemon, place: str, seconds: float) -> int:
    """Wait for the container's exit in short requests, so that a lost daemon is noticed.

    Raises:
        OSError: When the daemon is lost, or the program takes too long.
    """
    until = time.monotonic() + seconds
    while True:
        left = until - time.monotonic()
        daemon.limit(max(1.0, min(left, ASK_SECONDS)))
        try:
            code = daemon.send("POST", f"{place}/wait")["StatusCode"]
            break
        except (TimeoutError, ConnectionError, HTTPException):
            if left <= ASK_SECONDS:
                raise
            daemon.limit(ASK_SECONDS)
            daemon.get(f"{place}/json")
    if not isinstance(code, int):
        raise ValueError("its answer has no exit code")
    return code


def _output(daemon: Daemon, place: str) -> str:
    """What the program wrote, with lines that end alike: progress bars end them with `\\r`."""
    daemon.limit(ASK_SECONDS)
    frames = daemon.get_body(f"{place}/logs?stdout=1&stderr=1")
    return re.sub(r"\r\n?", "\n", b"".join(_contents(frames)).decode(errors="replace"))


def _contents(frames: bytes) -> Iterator[bytes]:
    at = 0
    while at + FRAME.size <= len(frames):
        (size,) = FRAME.unpack_from(frames, at)
        at += FRAME.size
        yield frames[at : at + size]
        at += size
