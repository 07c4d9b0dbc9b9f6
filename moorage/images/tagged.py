"""The engine version that the tag of a published image tells."""

from __future__ import annotations

import re

from moorage.images.catalogue import CATALOGUE
from moorage.spec import EngineName
from moorage.spec.image_reference import parse_reference

VERSION = r"(?P<version>\d+(?:\.\d+)+(?:\.?(?:a|b|rc|post|dev)\d+)*)"
RUNNER = rf"(?:^|.*-){{engine}}{VERSION}"
"""Tags of GPUStack's runner images, such as `cuda12.9-vllm0.18.0`."""


def tagged_version(reference: str, engine: EngineName) -> str:
    """The version in the tag of an official image or of a runner image; empty = nothing tells.

    Below another registry an image counts as the same. Other tags may number anything, and an
    image's labels are those of its base as often as its own.
    """
    parsed = parse_reference(reference)
    tagged = f"{parsed.path}:{parsed.tag}"
    patterns = [
        rf"(?:.*/)?{re.escape(row.template).replace(re.escape('{version}'), VERSION)}"
        for row in CATALOGUE
        if row.engine == engine and not row.only_version
    ]
    if parsed.path.rpartition("/")[2] == "runner":
        patterns.append(rf"[^:]*:{RUNNER.format(engine=engine.value)}")
    found = (re.fullmatch(pattern, tagged) for pattern in patterns)
    return next((match["version"] for match in found if match), "")
