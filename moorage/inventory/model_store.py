"""The directory of each model in a store: the same layout on every machine."""

import hashlib

HUB = "hf://"
S3 = "s3://"

MANIFEST = ".moorage.json"
"""File in the directory of each complete model: its contents, as JSON with an indent of one."""


SELECTED = "--"
"""Separates the folder name of a source from the hash of a selection of its files."""


def selection(source: str, files: str | None) -> str:
    """A remote source with the pattern of its selected files; each pattern has its own folder."""
    return f"{source}#{files}" if files and not is_local(source) else source


def repository(source: str) -> str:
    """A source without the pattern that `selection` adds."""
    return source if is_local(source) else source.partition("#")[0]


def folder_name(source: str) -> str:
    """The folder name of a source: its repository, or the name and a hash of a path.

    Args:
        source: As in the spec (`hf://org/repo`, `s3://bucket/prefix` or `file:///directory`), or as
            `selection` gives it.
    """
    whole = repository(source)
    if source != whole:
        digits = hashlib.sha256(source.removeprefix(whole).encode()).hexdigest()[:8]
        return f"{folder_name(whole)}{SELECTED}{digits}"
    if source.startswith(HUB):
        return source.removeprefix(HUB).replace("/", "--")
    path = source.removeprefix("file://").removeprefix(S3).rstrip("/")
    kind = "local" if is_local(source) else "s3"
    return f"{kind}--{path.rpartition('/')[2]}-{hashlib.sha256(path.encode()).hexdigest()[:8]}"


def is_local(source: str) -> bool:
    """Whether a source is a directory of the machine that runs the flows."""
    return not source.startswith((HUB, S3))


def local_path(source: str) -> str:
    """The path of a local source on the machine that runs the flows; empty for any other."""
    return source.removeprefix("file://") if is_local(source) else ""


def model_directory(store: str, source: str, revision: str) -> str:
    """The directory of a model; `revision` is a commit, or the fingerprint of a directory."""
    return f"{store.rstrip('/')}/{model_path(source, revision)}"


def model_path(source: str, revision: str) -> str:
    """The path of a model in the directory of all models."""
    return f"{folder_name(source)}/{revision}"
