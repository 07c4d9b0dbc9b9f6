"""From a planned container to the words of Docker's API."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from docker.types import DeviceRequest
from docker.types import Mount as DockerMount

from moorage.launch import ContainerSpec

SCRIPT_NAME = "moorage-prepare"
NANO = 10**9
"""Docker counts cores in billionths."""


def container_arguments(spec: ContainerSpec, secrets: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of a container: no privileges, its own devices, one published port."""
    argv = _prepared(spec)
    return {
        "image": spec.image,
        "name": spec.name,
        "entrypoint": list(argv[:1]),
        "command": list(argv[1:]),
        "environment": {
            variable.name: secrets[variable.secret] if variable.secret else variable.value
            for variable in spec.environment
        },
        "mounts": [
            DockerMount(mount.target, mount.source, type="bind", read_only=mount.read_only)
            for mount in spec.mounts
        ],
        "ports": {f"{spec.port}/tcp": (spec.bind, spec.port)},
        "device_requests": _device_requests(spec),
        "shm_size": spec.shm_bytes,
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
    }


def _prepared(spec: ContainerSpec) -> tuple[str, ...]:
    """The command line, behind the script that prepares the container where one is needed.

    The script itself is an argument: the host may be another machine, and has no file of ours.
    """
    if spec.preparation is None:
        return spec.argv
    script = files("moorage.engines").joinpath("prepare.sh").read_text()
    return ("/bin/sh", "-c", script, SCRIPT_NAME, *spec.preparation.words, *spec.argv)


def _device_requests(spec: ContainerSpec) -> list[DeviceRequest]:
    if not spec.devices or spec.accelerator_type != "cuda":
        return []
    return [DeviceRequest(device_ids=list(spec.devices), capabilities=[["gpu"]])]
