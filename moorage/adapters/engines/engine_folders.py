"""Folders of a host that outlive containers: caches of engines, and adapters of a served model."""

import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path, PurePosixPath

from moorage.adapters.docker.connection import connection
from moorage.adapters.docker.helper_job import ASK_SECONDS, HelperJob, run_with
from moorage.adapters.sources.store import verify
from moorage.adapters.system.os_errors import disk_failures, unwritten
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import ContainerSpec
from moorage.inventory.access import parse_access
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.probe import STORE
from moorage.models.pin import Pin
from moorage.models.source import ResolvedModel

PRIVATE, ANYONE = 0o700, 0o777
HELPER_SECONDS = 30
PARTIAL = ".partial"
SCRIPT = """\
while [ $# -gt 0 ]; do
  if [ -L "$1" ]; then echo "$1 is a link"; exit 1; fi
  mkdir -p "$1" && chmod "$2" "$1" || exit 1
  shift 2
done
"""
"""Creates folders. Links are refused: engines write here, so a link could lead to other files."""


def make_cache_folders(spec: ContainerSpec) -> None:
    """Create the cache folders of a container on this machine; raises `STORE_UNWRITABLE`.

    Any user id of a container may write into such a folder. On the host only the owner can enter
    the parent folder, because caches hold code that engines will run. A link that a container may
    have created is refused.
    """
    for path, mode in _folders(spec):
        folder = Path(path)
        try:
            if folder.is_symlink() and folder.parent.stat().st_mode & stat.S_IWOTH:
                raise Failure(Cause.STORE_UNWRITABLE, f"{path} is a link")
            folder.mkdir(parents=True, exist_ok=True)
            if folder.stat().st_mode & ANYONE != mode:
                folder.chmod(mode)
        except OSError as error:
            raise unwritten(path, error) from error


def make_remote_cache_folders(host: HostSnapshot, specs: Iterable[ContainerSpec]) -> None:
    """Create the cache folders in the store of a remote host, with a helper container.

    Raises:
        Failure: `STORE_UNWRITABLE`, or `RUNTIME_UNAVAILABLE` when the host does not answer.
    """
    access = parse_access(host.address)
    words: list[str] = []
    for path, mode in dict(chain.from_iterable(map(_folders, specs))).items():
        words += (f"{STORE}/{PurePosixPath(path).relative_to(host.store)}", f"{mode:o}")
    job = HelperJob(
        host.helper_image,
        ("sh", "-c", SCRIPT, "keep", *words),
        purpose="keep",
        seconds=HELPER_SECONDS,
        folders={STORE: host.store},
        writes=True,
    )
    with connection(access.url, ASK_SECONDS) as daemon:
        try:
            run_with(daemon, access.machine, job)
        except Failure as failure:
            if failure.cause is Cause.RUNTIME_UNAVAILABLE:
                detail = f"{host.name}: {host.store}: {failure.detail}"
                raise Failure(Cause.STORE_UNWRITABLE, detail) from failure
            raise failure.at(host.name) from failure


def _folders(spec: ContainerSpec) -> Iterator[tuple[str, int]]:
    """Folders with their modes, parents first."""
    kept = [mount for mount in spec.mounts if mount.kept]
    for mount in kept:
        source = PurePosixPath(mount.source)
        yield str(source.parent), PRIVATE
        yield str(source), ANYONE
        for other in kept:
            if other.target.startswith(f"{mount.target}/"):
                # The daemon would create the mount point of a nested folder for root only.
                inner = PurePosixPath(other.target).relative_to(mount.target)
                places = (inner, *inner.parents)
                yield from ((str(source / one), ANYONE) for one in reversed(places[:-1]))


def adapter_path(folder: Path, pin: Pin) -> Path:
    """Path of an adapter in the folder of a served model: `NAME/REVISION`.

    Each revision has its own path, because vLLM caches an adapter by path.
    """
    return folder / pin.name / pin.revision


def install_adapter(adapter: ResolvedModel, pin: Pin, folder: Path) -> Path:
    """Copy an adapter into the folder and verify it. An existing copy is kept.

    A link would not do: a local directory may change or vanish, but a server that evicted an
    adapter reads its files again.

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


def remove_unused_adapters(folder: Path, loaded: Collection[Pin]) -> None:
    """Remove adapters that no server has loaded. The folder stays, because containers mount it."""
    places = {adapter_path(folder, pin) for pin in loaded}
    kept = places | {place.parent for place in places}
    for found in (*folder.glob("*"), *folder.glob("*/*")):
        if found not in kept:
            shutil.rmtree(found, ignore_errors=True)
