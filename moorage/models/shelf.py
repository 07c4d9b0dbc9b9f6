"""Where a model has its place in a store: the same on every machine."""

from __future__ import annotations

import hashlib

HUB = "hf://"

MANIFEST = ".moorage.json"
"""In the directory of each complete model: what it holds, as JSON with an indent of one."""


def shelf(source: str) -> str:
    """The folder of a source: its repository's name, or that of a directory with its fingerprint.

    Args:
        source: As in the spec: `hf://org/repo` or `file:///directory`.
    """
    if source.startswith(HUB):
        return source.removeprefix(HUB).replace("/", "--")
    path = source.removeprefix("file://").rstrip("/")
    return f"local--{path.rpartition('/')[2]}-{hashlib.sha256(path.encode()).hexdigest()[:8]}"


def place(store: str, source: str, revision: str) -> str:
    """The directory of a model.

    Args:
        store: Directory of all models.
        source: As in the spec.
        revision: Commit, or fingerprint of a directory.
    """
    return f"{store.rstrip('/')}/{shelf(source)}/{revision}"
