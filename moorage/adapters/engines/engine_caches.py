"""Folders of the host that outlive the containers which write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path, PurePosixPath

from docker.errors import DockerException
from docker.types import Mount
from requests.exceptions import RequestException

from moorage.adapters.docker.errors import reach_failure
from moorage.adapters.docker.helper import run_helper
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import ContainerSpec
from moorage.inventory.access import parse_access
from moorage.inventory.snapshot import HostSnapshot
from moorage.inventory.survey.probe import STORE

PRIVATE = 0o700
ANYONE = 0o777

SECONDS = 30

SCRIPT = """\
while [ $# -gt 0 ]; do
  if [ -L "$1" ]; then echo "$1 is a link"; exit 1; fi
  mkdir -p "$1" && chmod "$2" "$1" || exit 1
  shift 2
done
"""
"""Links are refused: engines write here, and a link could lead to files of others."""


def make_cache_folders(spec: ContainerSpec) -> None:
    """Make the cache folders of a container on this machine.

    Any user id of a container may write into such a folder. On the host only the owner can enter
    the parent folder, because caches hold code that engines will run.

    Raises:
        Failure: `STORE_UNWRITABLE`.
    """
    for path, mode in _folders(spec):
        folder = Path(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if folder.stat().st_mode & ANYONE != mode:
                folder.chmod(mode)
        except OSError as error:
            raise Failure(Cause.STORE_UNWRITABLE, f"{path}: {error.strerror or error}") from error


def has_caches(spec: ContainerSpec) -> bool:
    """Whether a container has cache folders."""
    return any(mount.kept for mount in spec.mounts)


def make_remote_cache_folders(host: HostSnapshot, specs: Iterable[ContainerSpec]) -> None:
    """Make the cache folders on a remote host, with a helper container. Its store exists.

    Args:
        host: The host; all folders are in its store.
        specs: Containers that will run there.

    Raises:
        Failure: `STORE_UNWRITABLE`, or `RUNTIME_UNAVAILABLE` when the host does not answer.
    """
    access = parse_access(host.address)
    folders = dict(chain.from_iterable(map(_folders, specs)))
    words = [word for path, mode in folders.items() for word in (_inside(path, host), f"{mode:o}")]
    try:
        run_helper(
            access,
            host.helper_image,
            ("sh", "-c", SCRIPT, "keep", *words),
            purpose="keep",
            seconds=SECONDS,
            mounts=[Mount(STORE, host.store, type="bind")],
        )
    except Failure as failure:
        if failure.cause is Cause.RUNTIME_UNAVAILABLE:
            detail = f"{host.name}: {host.store}: {failure.detail}"
            raise Failure(Cause.STORE_UNWRITABLE, detail) from failure
        raise failure.at(host.name) from failure
    except (DockerException, RequestException) as error:
        raise reach_failure(error, access.address) from error


def _folders(spec: ContainerSpec) -> Iterator[tuple[str, int]]:
    """Folders with their modes, parents first."""
    kept = [mount for mount in spec.mounts if mount.kept]
    for mount in kept:
        source = PurePosixPath(mount.source)
        yield str(source.parent), PRIVATE
        yield str(source), ANYONE
        for other in kept:
            if other.target.startswith(f"{mount.target}/"):
                # The daemon would make the mount point of a nested folder for root alone.
                inner = PurePosixPath(other.target).relative_to(mount.target)
                places = (inner, *inner.parents)
                yield from ((str(source / one), ANYONE) for one in reversed(places[:-1]))


def _inside(path: str, host: HostSnapshot) -> str:
    return f"{STORE}/{PurePosixPath(path).relative_to(host.store)}"
