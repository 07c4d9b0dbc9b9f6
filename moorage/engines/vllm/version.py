"""From which version of vLLM on something holds."""

from __future__ import annotations

import re

from moorage.common.versions import version_key

NUMBERED = re.compile(r"[vV]?\d")


def at_least(version: str, least: str) -> bool:
    """Whether a version is another one or newer; an empty one is not known to be.

    What has no number, such as `nightly`, is newer than all.

    Args:
        version: As images and users write it, such as `v0.16.0`, `0.19.0-custom`, `0.16.0rc1`.
        least: The other.
    """
    if not NUMBERED.match(version):
        return bool(version)
    return version_key(version) >= version_key(least)
