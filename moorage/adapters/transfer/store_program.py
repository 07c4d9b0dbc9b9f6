"""The program that looks after a store: lists, checks, hides and removes what is in it.

It runs on hosts with Python's standard library alone, and on this machine as it is. A directory is
hidden before it is removed, so that nobody finds half of it, and whoever removes it can look once
more whether it is used.
"""

import contextlib
import errno
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from moorage.adapters.transfer.file_checks import (
    MANIFEST,
    STAMPS,
    damaged_files,
    manifest_files,
    read_json,
    write,
)

FOLDERS = ("models", "adapters")
CACHES = "cache"
MOST_FILES = 200_000
"""Files of caches that are counted."""

BLOCK = 512
"""Bytes of what a file system counts in: a file with holes takes less than its size."""

PARTIAL = ".partial"
WORKSPACE = re.compile(r"(\.[0-9a-f]{12})?\.partial$")
"""End of the name of a workspace: of this machine, or of the host with that key."""

GOING = ".going"
UNSURE = [-1, -1]
"""The stamp of a file that has to be read again before it is believed."""


def list_models(store: str, _: list[str]) -> list[dict[str, Any]]:
    """What is in a directory with the folders of models and adapters, complete or not.

    Returns:
        For each its `path` below the store, `source` and `revision` (of what is not complete, as
        far as its names tell), `bytes`, `used` (seconds since the epoch) and `state`.
    """
    return [
        _describe(store, os.path.join(folder, repository, name))
        for folder in FOLDERS
        for repository in _names(os.path.join(store, folder))
        for name in _names(os.path.join(store, folder, repository))
        if os.path.isdir(os.path.join(store, folder, repository, name))
    ]


def list_caches(store: str, _: list[str]) -> list[dict[str, Any]]:
    """What engines keep for their next start: `model`, `folder`, `bytes`, and whether `whole`.

    Engines write there, and so may the code of a model: no more than `MOST_FILES` are counted.
    """
    found, left = [], MOST_FILES
    for model in _names(os.path.join(store, CACHES)):
        for folder in _names(os.path.join(store, CACHES, model)):
            sizes = list(islice(_sizes(os.path.join(store, CACHES, model, folder)), left))
            left -= len(sizes)
            found.append({"model": model, "folder": folder, "bytes": sum(sizes), "whole": left > 0})
    return found


def verify(store: str, paths: list[str]) -> dict[str, list[str]]:
    """Read models completely; gives the names of damaged files by path.

    What is damaged is marked, so that the next deploy fetches it again.
    """
    found = {}
    for path in paths:
        place = os.path.join(store, path)
        bad = [file["name"] for file in damaged_files(place, manifest_files(place), thorough=True)]
        if bad:
            stamps = {**read_json(os.path.join(place, STAMPS)), **dict.fromkeys(bad, UNSURE)}
            write(os.path.join(place, STAMPS), json.dumps(stamps))
        found[path] = bad
    return found


def hide(store: str, paths: list[str]) -> dict[str, str]:
    """Hide models; gives, for each that is there, why it could not be hidden: empty = it is."""
    codes = {path: _rename(store, path, path + GOING) for path in paths}
    there = {path: code for path, code in codes.items() if code != errno.ENOENT}
    return {path: os.strerror(code) if code else "" for path, code in there.items()}


def restore(store: str, paths: list[str]) -> list[str]:
    """Unhide models, unless they were staged again meanwhile."""
    return [path for path in paths if not _rename(store, path, path.removesuffix(GOING))]


def remove(store: str, paths: list[str]) -> dict[str, str]:
    """Remove hidden models; gives, for each that is still there, why."""
    left = {}
    for path in paths:
        shutil.rmtree(os.path.join(store, path), ignore_errors=True)
        try:
            shutil.rmtree(os.path.join(store, path))  # fails on what could not be removed
        except FileNotFoundError:
            continue
        except OSError as error:
            left[path] = str(error.strerror)
    return left


ACTIONS: dict[str, Callable[[str, list[str]], Any]] = {
    "list": list_models,
    "caches": list_caches,
    "verify": verify,
    "hide": hide,
    "restore": restore,
    "remove": remove,
}


def main() -> None:
    """Run the action of the first argument on a store and paths in it, and print its result."""
    action, store, paths = sys.argv[1:]
    print(json.dumps(ACTIONS[action](store, json.loads(paths))))


def _describe(store: str, path: str) -> dict[str, Any]:
    place = os.path.join(store, path)
    manifest = read_json(os.path.join(place, MANIFEST))
    name = os.path.basename(path)
    ends = [state for state in (PARTIAL, GOING) if name.endswith(state)]
    size, newest = _measure(place)
    with contextlib.suppress(OSError):
        newest = os.stat(os.path.join(place, MANIFEST)).st_mtime
    return {
        "path": path,
        "source": manifest.get("source", os.path.basename(os.path.dirname(path))),
        "revision": WORKSPACE.sub("", name.removesuffix(GOING)),
        "bytes": size,
        "used": newest,
        "state": ends[-1][1:] if ends else "complete" if manifest else "unknown",
    }


def _measure(place: str) -> tuple[int, float]:
    """Bytes of all files, and the time of the newest."""
    size, newest = 0, 0.0
    for folder, _, names in os.walk(place):
        for name in names:
            with contextlib.suppress(OSError):
                found = os.lstat(os.path.join(folder, name))
                size, newest = size + found.st_size, max(newest, found.st_mtime)
    return size, newest


def _sizes(place: str) -> Iterator[int]:
    """Bytes on the disk of all files and folders below a folder; links are not followed."""
    folders = [place]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # it is gone
                    yield entry.stat(follow_symlinks=False).st_blocks * BLOCK
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _names(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    return []


def _rename(store: str, path: str, to: str) -> int:
    """Rename a directory; gives the number of the error, 0 = none."""
    try:
        os.rename(os.path.join(store, path), os.path.join(store, to))
    except OSError as error:
        return error.errno or errno.EIO
    return 0
