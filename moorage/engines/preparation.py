"""What has to happen in a container before the engine starts."""

from __future__ import annotations

import re

CUDA = "cuda"
TAGGED = re.compile(r"cuda(\d+)\.(\d+)")
NUMBERS = re.compile(r"v?(\d+)(?:\.(\d+))?")
WITHOUT_CHECK = {"NVIDIA_DISABLE_REQUIRE": "1"}
"""Keeps NVIDIA's container hook from refusing an image that is newer than the driver."""


def by_minor_version(image: str, accelerator_type: str, host_runtime: str) -> bool:
    """Whether an image runs on a host only by CUDA's minor-version compatibility.

    The libraries for newer drivers that such an image brings break consumer cards; they have to be
    taken away before the start.

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


def needs_script(packages: str | None, compatible: bool, disabled: bool) -> bool:
    """Whether a script takes the entrypoint's place; it ends by becoming the engine.

    Args:
        packages: Packages to install first; None = none were asked for.
        compatible: Whether libraries have to be taken away (`by_minor_version`).
        disabled: Whether the user forbids the script.
    """
    return not disabled and (packages is not None or compatible)
