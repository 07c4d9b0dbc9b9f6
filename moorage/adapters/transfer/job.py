"""What the staging program is told to do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from moorage.adapters.sources.store import Manifest
from moorage.inventory.model_store import folder_name
from moorage.inventory.survey.probe import STORE
from moorage.models.source import ResolvedModel


def job_of(
    model: ResolvedModel, ways: Sequence[dict[str, Any]], *, workers: int, seconds: float
) -> str:
    """One line of JSON. It holds secrets, so it goes nowhere but to the program.

    Args:
        model: What is wanted. Files of a local directory have no address: they are handed over.
        ways: Where its files are to be had, the best first.
        workers: Files that are fetched at the same time.
        seconds: How long it may take.
    """
    told = {
        "store": STORE,
        "shelf": folder_name(model.source),
        "commit": model.revision,
        "files": [file.model_dump(exclude={"target"}) for file in model.files],
        "manifest": Manifest.model_validate(model, from_attributes=True).model_dump_json(indent=1),
        "ways": list(ways),
        "workers": workers,
        "seconds": seconds,
    }
    return json.dumps(told) + "\n"
