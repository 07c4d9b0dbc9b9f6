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
from moorage.adapters.system.os_errors import watching_the_disk
from moorage.models.assets import Pin
from moorage.models.source import ResolvedModel

PARTIAL = ".partial"


def place_of(folder: Path, pin: Pin) -> Path:
    """Where an adapter lies in a folder."""
    return folder / pin.name / pin.revision


def shelve(adapter: ResolvedModel, pin: Pin, folder: Path) -> Path:
    """Copy an adapter into the folder, verified; what lies there complete stays.

    Copied and not linked: a local directory may be changed or removed while a server, which reads
    an adapter again after it had to make room, still needs it.

    Args:
        adapter: The adapter, staged.
        pin: What it was pinned to.
        folder: The folder that the servers see.

    Raises:
        Failure: `DISK_FULL`, `STORE_UNWRITABLE`, or `DOWNLOAD_CORRUPT` when a file has changed.
    """
    place = place_of(folder, pin)
    if place.is_dir():
        return place
    partial = place.with_name(place.name + PARTIAL)
    with watching_the_disk(folder):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for file in adapter.files:
            shutil.copyfile(Path(adapter.path, file.name), partial / file.name)
            verify(partial / file.name, file)
        partial.rename(place)
    return place


def forget(folder: Path) -> None:
    """Remove the folder itself where it is empty. No container may see it any more."""
    with suppress(OSError):
        folder.rmdir()


def tidy(folder: Path, kept: Collection[Pin]) -> None:
    """Remove what no server holds any more; the folder itself stays, for containers see it.

    Args:
        folder: The folder.
        kept: The adapters that are loaded.
    """
    places = {place_of(folder, pin) for pin in kept}
    names = {place.parent for place in places}
    for name in folder.glob("*"):
        for found in name.glob("*"):
            if found not in places:
                shutil.rmtree(found, ignore_errors=True)
        if name not in names:
            shutil.rmtree(name, ignore_errors=True)
