"""Manifests: how a registry describes an image, and what is read from that."""

from __future__ import annotations

from typing import Any

from moorage.common.strict_json import JsonError, decode
from moorage.common.values import Value
from moorage.models.printed import short

INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
ACCEPT = ", ".join((*INDEXES, *MANIFESTS))


class Found(Value):
    """An image as its registry knows it.

    Attributes:
        reference: Where it was found, as it was written.
        digest: `sha256:...` of the index, or of the manifest where there is no index.
        platforms: `linux/amd64`, ... of an index; empty where there is none.
    """

    reference: str
    digest: str
    platforms: tuple[str, ...] = ()

    def suits(self, architecture: str) -> bool:
        """Whether it is built for hosts of a CPU architecture, as far as an index tells."""
        return not self.platforms or f"linux/{architecture}" in self.platforms


def platforms(body: bytes) -> tuple[str, ...] | None:
    """The platforms of an index, empty for a manifest; None = it is neither."""
    try:
        content = decode(body)
    except JsonError:
        return None
    if not isinstance(content, dict) or "schemaVersion" not in content:
        return None
    entries = content.get("manifests")
    names = map(_platform, entries if isinstance(entries, list) else ())
    # What is attached to an image, such as its attestations, says `unknown`.
    return tuple(dict.fromkeys(name for name in names if "unknown" not in name))


def _platform(entry: Any) -> str:
    platform = entry.get("platform") if isinstance(entry, dict) else None
    if not isinstance(platform, dict):
        return "unknown"
    return short(f"{platform.get('os')}/{platform.get('architecture')}")
