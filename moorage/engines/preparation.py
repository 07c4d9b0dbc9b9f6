"""What has to happen in a container before the engine starts.

The script `prepare.sh` does it: it takes the entrypoint's place and ends by becoming the engine.
"""

from __future__ import annotations

import re

from moorage.engines.launch import Preparation
from moorage.engines.request import LaunchRequest

CUDA = "cuda"
TAGGED = re.compile(r"cuda(\d+)\.(\d+)")
NUMBERS = re.compile(r"v?(\d+)(?:\.(\d+))?")
WITHOUT_CHECK = {"NVIDIA_DISABLE_REQUIRE": "1"}
"""Keeps NVIDIA's container hook from refusing an image that is newer than the driver."""


def preparation(request: LaunchRequest) -> Preparation | None:
    """What is done in a seat's container first; None = nothing, and there is no script."""
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
        image: Its reference; the tag tells its CUDA (`cuda12.9-...`).
        accelerator_type: Of the host.
        host_runtime: Newest CUDA that the host's driver was made for; empty = unknown.
    """
    tag = image.rpartition("/")[2].partition(":")[2]
    built, host = TAGGED.search(tag), NUMBERS.match(host_runtime)
    if accelerator_type != CUDA or not built or not host:
        return False
    return built[1] == host[1] and int(built[2]) > int(host[2] or 0)
