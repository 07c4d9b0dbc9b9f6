"""What a seat gives its container, whatever the engine: devices, directories, variables.

The script `prepare.sh` runs what has to happen before the engine starts: it takes the entrypoint's
place and ends by becoming the engine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from moorage.common.values import Origin
from moorage.engines.flags import Variable
from moorage.engines.isolation import claimed_accelerators, device_kind_of, sees_more_than_claimed
from moorage.engines.launch import Mount, Preparation
from moorage.engines.request import LaunchRequest
from moorage.models.source import ModelFile

CUDA = "cuda"
TAGGED = re.compile(r"cuda(\d+)\.(\d+)")
NUMBERS = re.compile(r"v?(\d+)(?:\.(\d+))?")
WITHOUT_CHECK = {"NVIDIA_DISABLE_REQUIRE": "1"}
"""Keeps NVIDIA's container hook from refusing an image that is newer than the driver."""


def preparation(request: LaunchRequest) -> Preparation | None:
    """The preparation of a seat's container; None = nothing, and there is no script."""
    if not request.in_container:
        return None
    spec = request.spec.engine
    found = Preparation(
        packages=tuple(name.replace(" ", "") for name in spec.packages),
        without_cuda_compat=runs_by_minor_version(request) and not spec.keep_cuda_compat,
    )
    return found if found.is_needed else None


def runs_by_minor_version(request: LaunchRequest) -> bool:
    """Whether the image's CUDA is newer than the driver's, within a major version."""
    image, kind = request.image, request.seat.accelerator_type
    if image is None or kind != CUDA:
        return False
    device = request.host.first(kind)
    host = device.runtime_version if device else ""
    return image.newer_runtime or by_minor_version(image.reference, kind, host)


def by_minor_version(image: str, accelerator_type: str, host_runtime: str) -> bool:
    """Whether an image runs on a host only by CUDA's minor-version compatibility, by its tag.

    Args:
        image: Its reference; the tag names its CUDA (`cuda12.9-...`).
        accelerator_type: Of the host.
        host_runtime: Newest CUDA that the host's driver was made for; empty = unknown.
    """
    tag = image.rpartition("/")[2].partition(":")[2]
    built, host = TAGGED.search(tag), NUMBERS.match(host_runtime)
    if accelerator_type != CUDA or not built or not host:
        return False
    return built[1] == host[1] and int(built[2]) > int(host[2] or 0)


def visibility(request: LaunchRequest) -> tuple[Variable, ...]:
    """Variables that limit an engine to its claimed accelerators where it could use others."""
    kind, seat = device_kind_of(request), request.seat
    indexes = ",".join(map(str, seat.accelerators))
    pairs: list[tuple[str, str, str]] = []
    if kind.chosen_by and request.in_container:
        pairs.append((kind.chosen_by, indexes, "the container runtime hands out the claimed ones"))
    if kind.visibility and seat.accelerators and sees_more_than_claimed(request):
        pairs.append((kind.visibility, indexes, "the accelerators that were claimed"))
        if kind.order:
            pairs.append((*kind.order, "counts them as the driver does"))
    return tuple(
        Variable(name=name, value=value, origin=Origin.DERIVED, reason=reason)
        for name, value, reason in pairs
    )


def compatibility(request: LaunchRequest) -> tuple[Variable, ...]:
    """NVIDIA's hook refuses an image whose CUDA is newer than the driver's in the minor version."""
    if not runs_by_minor_version(request):
        return ()
    reason = "the image's CUDA is newer than the driver's; they are of the same major version"
    return tuple(
        Variable(name=name, value=value, origin=Origin.DERIVED, reason=reason)
        for name, value in WITHOUT_CHECK.items()
    )


def mounts(request: LaunchRequest) -> tuple[Mount, ...]:
    """The model's directory and the files of the host's driver, all read-only.

    File by file where links lead out of the directory, as in the hub's cache.
    """
    if not request.in_container:
        return ()
    driver = tuple(Mount(source=path, target=path) for path in device_kind_of(request).mounts)
    return (
        *mounts_of(request.model_path, request.files, request.engine_model_path),
        *driver,
    )


def mounts_of(source: str, files: Sequence[ModelFile], target: str) -> tuple[Mount, ...]:
    """A directory, read-only; file by file where links lead out of it."""
    if not any(file.target for file in files):
        return (Mount(source=source, target=target),)
    return tuple(
        Mount(source=file.target or f"{source}/{file.name}", target=f"{target}/{file.name}")
        for file in files
    )


def devices(request: LaunchRequest) -> tuple[str, ...]:
    """Identifiers of the seat's accelerators: UUIDs where they are known."""
    return tuple(item.identifier for item in claimed_accelerators(request))
