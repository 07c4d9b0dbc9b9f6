"""Where other machines get the files of a model, as the staging program is told it."""

from __future__ import annotations

from typing import Any

from huggingface_hub import hf_hub_url

from moorage.adapters.sources.s3_http import S3Wire
from moorage.inventory.model_store import HUB
from moorage.models.source import ResolvedModel

SPARE_SECONDS = 300


def way_from_hub(model: ResolvedModel, endpoint: str, token: str | None) -> dict[str, Any]:
    """The way to a repository on the hub.

    Args:
        model: What is wanted.
        endpoint: Address of the hub.
        token: Access token of the hub.
    """
    repo = model.source.removeprefix(HUB)
    return {
        "name": "hub",
        "headers": {"Authorization": f"Bearer {token}"} if token else {},
        "urls": {
            file.name: hf_hub_url(repo, file.name, revision=model.revision, endpoint=endpoint)
            for file in model.files
        },
    }


def way_from_s3(model: ResolvedModel, wire: S3Wire, seconds: float) -> dict[str, Any]:
    """The way to a bucket: addresses that are good for a while, and hold no keys.

    Args:
        model: What is wanted.
        wire: Who signs them.
        seconds: How long a download may take.
    """
    until = seconds + SPARE_SECONDS
    return {"name": "s3", "urls": {f.name: wire.presigned(f.name, until) for f in model.files}}
