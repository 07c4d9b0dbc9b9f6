"""A planned container as arguments of Docker's API."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from docker.types import DeviceRequest, Ulimit
from docker.types import Mount as DockerMount

from moorage.adapters.docker.secret_files import SECRETS_FILE
from moorage.engines.isolation import Isolation
from moorage.engines.launch import ContainerSpec, Preparation
from moorage.inventory.devices import device_kind
from moorage.spec import NetworkMode, RestartPolicy

SCRIPT_NAME = "moorage-prepare"
NANO = 10**9
"""Docker counts cores in billionths."""


def container_arguments(spec: ContainerSpec) -> dict[str, Any]:
    """The arguments of a container: exactly what its plan says, without secrets."""
    argv = _prepared(spec)
    return {
        "image": spec.image,
        "name": spec.name,
        "entrypoint": list(argv[:1]),
        "command": list(argv[1:]),
        "environment": {
            variable.name: variable.value for variable in spec.environment if not variable.secret
        },
        "mounts": [
            DockerMount(
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
        "ports": {f"{spec.port}/tcp": (spec.bind, spec.port)} if spec.publishes else {},
        "device_requests": _device_requests(spec),
        "shm_size": spec.shm_bytes or None,
        "mem_limit": spec.memory_bytes or None,
        "nano_cpus": spec.cores * NANO or None,
        # Without this the limit is doubled by swap, and a container that outgrows its claim crawls.
        "memswap_limit": spec.memory_bytes or None,
        "working_dir": spec.working_directory or None,
        "labels": spec.labels,
        "security_opt": ["no-new-privileges"],
        # Readiness is ours to judge; an image's own check would only take processor time.
        "healthcheck": {"test": ["NONE"]},
        "init": True,
        "detach": True,
        **_isolation(spec.isolation),
    }


def _prepared(spec: ContainerSpec) -> tuple[str, ...]:
    """The command line, behind the script that prepares the container where one is needed.

    It is needed too where there are secrets: it reads them from a file, and becomes the engine.

    The script itself is an argument: the host may be another machine, and has no file of ours.
    """
    secrets = ("--secrets", SECRETS_FILE) if any(v.secret for v in spec.environment) else ()
    if spec.preparation is None and not secrets:
        return spec.argv
    words = (spec.preparation or Preparation()).words
    script = files("moorage.engines").joinpath("prepare.sh").read_text()
    return ("/bin/sh", "-c", script, SCRIPT_NAME, *secrets, *words, *spec.argv)


def _isolation(isolation: Isolation) -> dict[str, Any]:
    """Options for isolation; what the plan leaves open keeps Docker's default."""
    found: dict[str, Any] = {
        "ipc_mode": isolation.ipc.value,
        "privileged": isolation.privileged,
        "cap_add": list(isolation.capabilities),
        "devices": [f"{node}:{node}:rwm" for node in isolation.nodes],
        "group_add": list(isolation.groups),
        "ulimits": [
            Ulimit(name=name, soft=limit, hard=limit) for name, limit in isolation.ulimits.items()
        ],
    }
    if isolation.user:
        found["user"] = isolation.user
    if isolation.runtime:
        found["runtime"] = isolation.runtime
    if isolation.shares_memory_of:
        found["ipc_mode"] = f"container:{isolation.shares_memory_of}"
    if isolation.sees_processes_of:
        found["pid_mode"] = f"container:{isolation.sees_processes_of}"
    if isolation.network == NetworkMode.HOST:
        found["network_mode"] = "host"
    if isolation.restart != RestartPolicy.NONE:
        found["restart_policy"] = {"Name": isolation.restart.value}
    return found


def _device_requests(spec: ContainerSpec) -> list[DeviceRequest]:
    if not spec.devices or not device_kind(spec.accelerator_type).requested:
        return []
    return [DeviceRequest(device_ids=list(spec.devices), capabilities=[["gpu"]])]
