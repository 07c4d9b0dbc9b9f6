"""A planned container for Docker's API: its arguments, and its secrets as a file."""

from __future__ import annotations

import io
import shlex
import tarfile
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

from moorage.adapters.docker import sdk
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import ContainerSpec, Isolation, Preparation
from moorage.inventory.devices import device_kind
from moorage.spec import NetworkMode, RestartPolicy

SECRETS_FILE = "/run/moorage/secrets"
"""Path in the container's own layer, which survives restarts, unlike a memory file system."""

SHELL = "/bin/sh"

MOST_PACKED = 2**20
"""Most bytes to keep of a file in an image."""


def container_arguments(spec: ContainerSpec) -> dict[str, Any]:
    """The arguments for a planned container, without secrets."""
    argv = _prepared(spec)
    ports = (spec.port, *spec.services.values()) if spec.publishes else ()
    return {
        "image": spec.image,
        "name": spec.name,
        "entrypoint": list(argv[:1]),
        "command": list(argv[1:]),
        "environment": {
            variable.name: variable.value for variable in spec.environment if not variable.secret
        },
        "mounts": [
            sdk.Mount(
                mount.target,
                mount.source,
                type="volume" if mount.volume else "bind",
                read_only=mount.read_only,
                labels=spec.labels if mount.volume else None,
            )
            for mount in spec.mounts
        ],
        # The library would add the proxies of this machine's ~/.docker/config.json, with passwords.
        "use_config_proxy": False,
        "ports": {f"{port}/tcp": (spec.bind, port) for port in ports},
        "device_requests": _device_requests(spec),
        "shm_size": spec.shm_bytes or None,
        "mem_limit": spec.memory_bytes or None,
        "nano_cpus": spec.cores * 10**9 or None,
        # Otherwise swap doubles the limit, and a container that outgrows its claim becomes slow.
        "memswap_limit": spec.memory_bytes or None,
        "working_dir": spec.working_directory or None,
        "labels": spec.labels,
        "security_opt": ["no-new-privileges"],
        # moorage checks readiness itself; an image's own check would only take processor time.
        "healthcheck": {"test": ["NONE"]},
        "init": True,
        "detach": True,
        **_isolation(spec.isolation),
    }


def _prepared(spec: ContainerSpec) -> tuple[str, ...]:
    """The command line, run by `prepare.sh` if the container needs preparation or has secrets.

    The script itself is an argument, because a remote host has none of moorage's files.
    """
    secrets = ("--secrets", SECRETS_FILE) if any(v.secret for v in spec.environment) else ()
    if spec.preparation is None and not secrets:
        return spec.argv
    words = (spec.preparation or Preparation()).words
    script = files("moorage.engines").joinpath("prepare.sh").read_text()
    return (SHELL, "-c", script, "moorage-prepare", *secrets, *words, *spec.argv)


def _isolation(isolation: Isolation) -> dict[str, Any]:
    """Docker's options for isolation; options that the plan leaves open keep Docker's default."""
    sharing = isolation.shares_memory_of
    fixed = {
        "ipc_mode": f"container:{sharing}" if sharing else isolation.ipc.value,
        "privileged": isolation.privileged,
        "cap_add": list(isolation.capabilities),
        "devices": [f"{node}:{node}:rwm" for node in isolation.nodes],
        "group_add": list(isolation.groups),
        "ulimits": [
            sdk.Ulimit(name=name, soft=limit, hard=limit)
            for name, limit in isolation.ulimits.items()
        ],
    }
    seen, restart = isolation.sees_processes_of, isolation.restart
    chosen = {
        "user": isolation.user,
        "runtime": isolation.runtime,
        "pid_mode": seen and f"container:{seen}",
        "network_mode": "host" if isolation.network == NetworkMode.HOST else "",
        "restart_policy": {"Name": restart.value} if restart != RestartPolicy.NONE else {},
        "read_only": isolation.locked,
        "cap_drop": ["ALL"] if isolation.locked else [],
    }
    return fixed | {name: value for name, value in chosen.items() if value}


def _device_requests(spec: ContainerSpec) -> list[sdk.DeviceRequest]:
    by_runtime = bool(spec.isolation.runtime)
    if not spec.devices or by_runtime or not device_kind(spec.accelerator_type).requested:
        return []
    return [sdk.DeviceRequest(device_ids=list(spec.devices), capabilities=[["gpu"]])]


def deliver(container: sdk.Container, spec: ContainerSpec, secrets: Mapping[str, str]) -> None:
    """Put generated files and secrets into a container that is created, but not started yet.

    It never starts with only some of them: after an interruption here, nobody starts the container.
    The files are not on the host, and vanish when the container is removed.

    Raises:
        Failure: `LAUNCH_REFUSED` when the image has no shell that could read the secrets.
        APIError: When the daemon refuses.
    """
    if spec.files:
        container.put_archive("/", _packed({file.path: file.content for file in spec.files}))
    _deliver_secrets(container, spec, secrets)


def _deliver_secrets(
    container: sdk.Container, spec: ContainerSpec, secrets: Mapping[str, str]
) -> None:
    """Put secrets into a file that only the engine's user can read.

    `docker inspect` would show secrets in the configuration to all users of the daemon, and from
    there they would get into logs and tickets. `prepare.sh` exports them and starts the engine.
    """
    values = {v.name: secrets[v.secret] for v in spec.environment if v.secret}
    if not values:
        return
    if _packed_file(container, SHELL) is None:
        raise Failure(
            Cause.LAUNCH_REFUSED,
            f"{spec.image} has no {SHELL}, through which {', '.join(values)} would reach the"
            " engine; as plain variables they could be read with `docker inspect`",
            suggestion="Take an image with a shell. Where the key is moorage's own,"
            " `engine.api_key: none` does without it.",
        )
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
    content, owner = "".join(lines), _owner(container)
    container.put_archive("/", _packed({SECRETS_FILE: content}, owner, for_others=False))


def _packed(
    files: Mapping[str, str], owner: tuple[int, int] = (0, 0), *, for_others: bool = True
) -> bytes:
    """A tar archive of read-only files, by their absolute paths, and of their folders."""
    packed, rights = io.BytesIO(), 0o555 if for_others else 0o500
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in _folders(files):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode, (entry.uid, entry.gid) = tarfile.DIRTYPE, rights, owner
            archive.addfile(entry)
        for path, content in files.items():
            data = content.encode()
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(data), rights & 0o444
            entry.uid, entry.gid = owner
            archive.addfile(entry, io.BytesIO(data))
        length = archive.offset + 2 * tarfile.BLOCKSIZE
    # Podman's reader stops at the two empty blocks: further bytes would break its pipe.
    return packed.getvalue()[:length]


def _folders(files: Iterable[str]) -> list[str]:
    """The folders of the files, outer ones first, without top-level folders, the image's own."""
    found = {
        str(folder).lstrip("/")
        for path in files
        for folder in PurePosixPath(path).parents
        if len(folder.parts) > 2
    }
    return sorted(found)


def _owner(container: sdk.Container) -> tuple[int, int]:
    """User and group of the engine; root if the image names an unknown user."""
    user, _, group = str(container.attrs["Config"].get("User") or "0").partition(":")
    if user.isdecimal():
        return int(user), int(group) if group.isdecimal() else 0
    for line in _users(container):
        fields = line.split(":")
        if fields[0] == user and len(fields) > 3 and fields[2].isdecimal():
            return int(fields[2]), int(fields[3])
    return 0, 0


def _users(container: sdk.Container) -> list[str]:
    if (packed := _packed_file(container, "/etc/passwd")) is None:
        return []
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        first = archive.next()
    if first is None or not first.isfile():
        return []
    content = packed[first.offset_data :][: first.size]  # of a longer file, what was kept
    return content.decode(errors="replace").splitlines()


def _packed_file(container: sdk.Container, path: str) -> bytes | None:
    """The start of an archive with the file; None = there is no such file."""
    try:
        packed, _ = container.get_archive(path)
    except sdk.NotFound:
        return None
    found = bytearray()
    for part in packed:
        found += part[: MOST_PACKED - len(found)]
        if len(found) == MOST_PACKED:
            break  # at the end of a shorter one the connection can be used again
    return bytes(found)
