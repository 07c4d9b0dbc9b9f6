"""Secrets into containers: as a file in the container's own layer, never as its configuration.

`docker inspect` shows the configuration of a container, its environment included, to whoever may
ask the daemon, and tools copy it into logs and tickets. So the values are put into a file between
creation and start, readable by the engine's user alone, and `prepare.sh` exports them before it
becomes the engine. The layer outlives restarts, as a memory file system would not.
"""

from __future__ import annotations

import io
import shlex
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from docker.errors import NotFound
from docker.models.containers import Container

from moorage.common.failures import Cause, Failure
from moorage.engines.launch import ContainerSpec

SECRETS_FILE = "/run/moorage/secrets"
SHELL = "/bin/sh"
USERS_FILE = "/etc/passwd"


def secret_environment(spec: ContainerSpec, secrets: Mapping[str, str]) -> dict[str, str]:
    """The variables of a container that are secrets, with their values."""
    return {v.name: secrets[v.secret] for v in spec.environment if v.secret}


def deliver(container: Container, spec: ContainerSpec, secrets: Mapping[str, str]) -> None:
    """Put the secrets of a container into it; it is created and not started yet.

    Raises:
        Failure: `LAUNCH_REFUSED` when the image has no shell that could read them.
        APIError: When the daemon refuses.
    """
    values = secret_environment(spec, secrets)
    if not values:
        return
    if not _has(container, SHELL):
        raise Failure(
            Cause.LAUNCH_REFUSED,
            f"{spec.image} has no {SHELL}, through which {', '.join(values)} would reach the"
            " engine; as plain variables they could be read with `docker inspect`",
            suggestion="Take an image with a shell. Where the key is moorage's own,"
            " `engine.api_key: none` does without it.",
        )
    container.put_archive("/", _archive(_script(values), *_owner(container)))


def _script(values: Mapping[str, str]) -> bytes:
    """What the shell reads; a value may hold anything but a zero byte."""
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
    return "".join(lines).encode()


def _archive(content: bytes, user: int, group: int) -> bytes:
    path = PurePosixPath(SECRETS_FILE)
    folder = tarfile.TarInfo(str(path.parent).lstrip("/"))
    folder.type, folder.mode = tarfile.DIRTYPE, 0o500
    file = tarfile.TarInfo(str(path).lstrip("/"))
    file.size, file.mode = len(content), 0o400
    for entry in (folder, file):
        entry.uid, entry.gid = user, group
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(folder)
        archive.addfile(file, io.BytesIO(content))
    return packed.getvalue()


def _owner(container: Container) -> tuple[int, int]:
    """User and group that the engine runs as; root where the image names nobody that it knows."""
    user, _, group = str(container.attrs["Config"].get("User") or "0").partition(":")
    if user.isdecimal():
        return int(user), int(group) if group.isdecimal() else 0
    for fields in _users(container):
        if fields[0] == user:
            return int(fields[2]), int(fields[3])
    return 0, 0


def _users(container: Container) -> Iterator[list[str]]:
    try:
        packed, _ = container.get_archive(USERS_FILE)
    except NotFound:
        return
    with tarfile.open(fileobj=io.BytesIO(b"".join(packed))) as archive:
        file = archive.extractfile(archive.getmembers()[0])
        for line in file.read().decode(errors="replace").splitlines() if file else ():
            if len(fields := line.split(":")) > 3 and fields[2].isdecimal():
                yield fields


def _has(container: Container, path: str) -> bool:
    try:
        packed, _ = container.get_archive(path)
    except NotFound:
        return False
    for _ in packed:  # else the connection could not be used again
        pass
    return True
