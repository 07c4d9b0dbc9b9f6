"""Folders of the host that outlive the containers which write them."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from moorage.failures import Cause, Failure
from moorage.launch import ContainerSpec

PRIVATE = 0o700
ANYONE = 0o777


def make_kept(spec: ContainerSpec) -> None:
    """Make the folders that a container keeps things in.

    Any user of a container may write into such a folder, whatever its number; on the host nobody
    but its owner can pass the folder around it, for what is kept is code that will be run.

    Raises:
        Failure: `STORE_UNWRITABLE`.
    """
    kept = [mount for mount in spec.mounts if mount.kept]
    for mount in kept:
        inner = [item.target for item in kept if item.target.startswith(f"{mount.target}/")]
        try:
            _make(Path(mount.source))
            for target in inner:
                _make_place(Path(mount.source), PurePosixPath(target).relative_to(mount.target))
        except OSError as error:
            raise Failure(
                Cause.STORE_UNWRITABLE, f"{mount.source}: {error.strerror or error}"
            ) from error


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _open_to(folder.parent, PRIVATE)
    _open_to(folder, ANYONE)


def _make_place(folder: Path, inside: PurePosixPath) -> None:
    """Make where another folder is put over this one, else the daemon does, for root alone."""
    for part in inside.parts:
        folder /= part
        folder.mkdir(exist_ok=True)
        _open_to(folder, ANYONE)


def _open_to(folder: Path, mode: int) -> None:
    if folder.stat().st_mode & ANYONE != mode:
        folder.chmod(mode)
