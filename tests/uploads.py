"""Uploads images to a registry blob by blob, without a daemon."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping
from typing import Any

import httpx

from moorage.adapters.registry.registry import INDEXES, MANIFESTS
from tests.local_registry import LocalRegistry

CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def layer(size: int) -> bytes:
    """A unique layer with one file of `size` bytes."""
    buffer = io.BytesIO()
    content = os.urandom(size)
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo(hashlib.sha256(content).hexdigest())
        entry.size = size
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def upload_image(
    registry: LocalRegistry, path: str, tag: str, *layers: bytes, architecture: str = "amd64"
) -> tuple[str, list[str]]:
    """Upload an image; returns its digest, and the digests of its layers."""
    packed = [gzip.compress(data, 1, mtime=0) for data in layers]
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(data) for data in layers]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFESTS[1],
        "config": _blob(registry, path, json.dumps(config).encode(), CONFIG),
        "layers": [_blob(registry, path, data, LAYER) for data in packed],
    }
    return _put(registry, path, tag, manifest), [digest_of(data) for data in packed]


def upload_index(registry: LocalRegistry, path: str, tag: str, manifests: Mapping[str, str]) -> str:
    """Upload an index of existing manifests, by CPU architecture; returns its digest."""
    entries = []
    for architecture, digest in manifests.items():
        known = httpx.get(
            f"{registry.base}/{path}/manifests/{digest}", headers={"Accept": ", ".join(MANIFESTS)}
        )
        entries.append(
            {
                "mediaType": known.headers["content-type"],
                "digest": digest,
                "size": len(known.content),
                "platform": {"os": "linux", "architecture": architecture},
            }
        )
    index = {"schemaVersion": 2, "mediaType": INDEXES[1], "manifests": entries}
    return _put(registry, path, tag, index)


def digest_of(data: bytes) -> str:
    """The digest of some bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _blob(registry: LocalRegistry, path: str, data: bytes, kind: str) -> dict[str, Any]:
    digest = digest_of(data)
    begun = httpx.post(f"{registry.base}/{path}/blobs/uploads/", verify=False)
    place = httpx.URL(begun.headers["location"]).copy_merge_params({"digest": digest})
    assert httpx.put(place, content=data, timeout=60, verify=False).status_code == 201
    return {"mediaType": kind, "digest": digest, "size": len(data)}


def _put(registry: LocalRegistry, path: str, tag: str, content: dict[str, Any]) -> str:
    answer = httpx.put(
        f"{registry.base}/{path}/manifests/{tag}",
        content=json.dumps(content).encode(),
        headers={"Content-Type": content["mediaType"]},
        verify=False,
    )
    assert answer.status_code == 201, answer.text
    return str(answer.headers["docker-content-digest"])
