"""The folder of adapters that are loaded into one model while it serves.

Each lies at `NAME/REVISION`: another revision has another path, because vLLM keeps what it cached
for a path. The folder itself stays as long as containers see it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from moorage.adapters.sources.verify import verify
from moorage.adapters.system.os_errors import disk_failures
from moorage.models.assets import Pin
from moorage.models.source import ResolvedModel

PARTIAL = ".partial"


def adapter_path(folder: Path, pin: Pin) -> Path:
    """Where an adapter lies in a folder."""
    return folder / pin.name / pin.revision


def install(adapter: ResolvedModel, pin: Pin, folder: Path) -> Path:
    """Copy an adapter into the folder and verify it. An existing copy is kept.

    It is copied, not linked: a local directory may change or vanish while a server still needs the
    files, because a server that evicted an adapter reads them again.

    Args:
        adapter: The adapter, staged.
        pin: What it was pinned to.
        folder: The folder that is mounted into the servers.

    Raises:
        Failure: `DISK_FULL`, `STORE_UNWRITABLE`, or `DOWNLOAD_CORRUPT` when a file has changed.
    """
    place = adapter_path(folder, pin)
    if place.is_dir():
        return place
    partial = place.with_name(place.name + PARTIAL)
    with disk_failures(folder):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for file in adapter.files:
            shutil.copyfile(Path(adapter.path, file.name), partial / file.name)
            verify(partial / file.name, file)
        partial.rename(place)
    return place


def remove_if_empty(folder: Path) -> None:
    """Remove the folder itself if it is empty. No container may mount it any more."""
    with suppress(OSError):
        folder.rmdir()


def remove_unused(folder: Path, kept: Collection[Pin]) -> None:
    """Remove adapters that no server has loaded. The folder stays, because containers mount it.

    Args:
        folder: The folder.
        kept: The adapters that are loaded.
    """
    places = {adapter_path(folder, pin) for pin in kept}
    names = {place.parent for place in places}
    for name in folder.glob("*"):
        for found in name.glob("*"):
            if found not in places:
                shutil.rmtree(found, ignore_errors=True)
        if name not in names:
            shutil.rmtree(name, ignore_errors=True)
