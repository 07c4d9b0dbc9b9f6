"""A directory without config.json: whatever a custom engine makes of its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile, ResolvedModel, WeightSummary

FAMILY = "files"


def as_it_is(source: str, root: Path, files: Sequence[ModelFile], revision: str) -> ResolvedModel:
    """The model of a custom engine: all of its files, and their sizes as its weights.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when there are none.
    """
    size = sum(file.size for file in files)
    if not size:
        raise Failure(Cause.SOURCE_INCOMPLETE, f"there is nothing in {root}")
    return ResolvedModel(
        source=source,
        revision=revision,
        path=str(root),
        staged=True,
        files=tuple(files),
        config={},
        config_origin="nobody: there is no config.json",
        weights=WeightSummary(family=FAMILY, bytes=size),
    )
