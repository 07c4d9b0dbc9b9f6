"""Images of GPUStack's runner catalogue, where the package `gpustack-runner` is installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from moorage.images.runner import runner_rows
from moorage.inventory.catalogue import CatalogueRow

PACKAGE = "gpustack_runner"


def runner_images(kinds: Collection[str], architecture: str) -> tuple[CatalogueRow, ...]:
    """The images for some accelerator types on a CPU architecture; none without the package."""
    if not kinds or importlib.util.find_spec(PACKAGE) is None:
        return ()
    return tuple(
        row
        for row in _rows()
        if row.accelerator_type in kinds and architecture in row.architectures
    )


@lru_cache(maxsize=1)
def _rows() -> tuple[CatalogueRow, ...]:
    package: Any = importlib.import_module(PACKAGE)
    return runner_rows(package.list_runners(todict=True))
