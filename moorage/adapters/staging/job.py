"""What the staging program is told to do."""

from __future__ import annotations

import json
from typing import Any

from huggingface_hub import hf_hub_url

from moorage.adapters.sources.store import Manifest
from moorage.models.shelf import HUB, shelf
from moorage.models.source import ResolvedModel
from moorage.survey.probe import STORE


def job_of(
    model: ResolvedModel, endpoint: str, token: str | None, *, workers: int, seconds: float
) -> str:
    """One line of JSON. It holds the token, so it goes nowhere but to the program.

    Args:
        model: What is wanted. Files of a local directory have no address: they are handed over.
        endpoint: Address of the hub.
        token: Access token of the hub.
        workers: Files that are fetched at the same time.
        seconds: How long it may take.
    """
    files = [
        file.model_dump(include={"name", "size", "sha256", "git_oid"}, exclude_defaults=True)
        | {"size": file.size}
        | _address(model, file.name, endpoint)
        for file in model.files
    ]
    told: dict[str, Any] = {
        "store": STORE,
        "shelf": shelf(model.source),
        "commit": model.revision,
        "files": files,
        "manifest": Manifest.model_validate(model, from_attributes=True).model_dump_json(indent=1),
        "workers": workers,
        "seconds": seconds,
    }
    if token:
        told["headers"] = {"Authorization": f"Bearer {token}"}
    return json.dumps(told) + "\n"


def _address(model: ResolvedModel, name: str, endpoint: str) -> dict[str, str]:
    if not model.source.startswith(HUB):
        return {}
    repo = model.source.removeprefix(HUB)
    return {"url": hf_hub_url(repo, name, revision=model.revision, endpoint=endpoint)}
