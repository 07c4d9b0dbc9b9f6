"""A directory without config.json: whatever a custom engine makes of its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from moorage.failures import Cause, Failure
from moorage.models.source import ModelFile, ResolvedModel, WeightSummary
from moorage.spec import EngineName, ModelSpec

FAMILY = "files"
MOST_FILES = 10_000
"""A directory with more is a mistake, such as `/`, and no model."""


def is_anything(spec: ModelSpec, root: Path) -> bool:
    """Whether nobody but the engine has to understand the model."""
    custom = spec.engine.name == EngineName.CUSTOM
    return custom and root.is_dir() and not (root / "config.json").is_file()


def as_it_is(
    spec: ModelSpec, root: Path, files: Sequence[ModelFile], revision: str
) -> ResolvedModel:
    """The model of a custom engine: all of its files, and their sizes as its weights.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when there are none.
    """
    size = sum(file.size for file in files)
    if not size:
        raise Failure(Cause.SOURCE_INCOMPLETE, f"there is nothing in {root}")
    return ResolvedModel(
        source=spec.source,
        revision=revision,
        path=str(root),
        staged=True,
        files=tuple(files),
        config={},
        config_origin="nobody: there is no config.json",
        weights=WeightSummary(family=FAMILY, bytes=size),
    )
