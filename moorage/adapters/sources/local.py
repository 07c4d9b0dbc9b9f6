"""Models in a directory of this machine: read where they lie, never copied."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path

from moorage.adapters.sources.anything import MOST_FILES, as_it_is
from moorage.adapters.sources.describe import (
    announced,
    describe,
    keep_indexed,
    weigh_here,
)
from moorage.failures import Cause, Failure
from moorage.models.assets import Asked
from moorage.models.layout import MODEL, Layout
from moorage.models.source import ModelFile, ResolvedModel
from moorage.models.weights import join_headers, summarize
from moorage.spec.safe import is_of_the_system

SCHEME = "file://"


class LocalSource:
    """Directories named by `file://`.

    Args:
        layout: What a directory is expected to hold.
        anything: Whether one without a configuration will do: only the engine has to understand it.
    """

    def __init__(self, layout: Layout = MODEL, *, anything: bool = False) -> None:
        self._layout, self._anything = layout, anything

    def resolve(self, asked: Asked) -> ResolvedModel:
        """Read what the model is. Its revision is a fingerprint of names, sizes and times.

        Raises:
            Failure: `SOURCE_MISSING` when there is no such directory, `SOURCE_INCOMPLETE` when a
                file is missing, damaged or unreadable, `CONFIG_UNREADABLE`.
        """
        root = Path(asked.source.removeprefix(SCHEME)).expanduser().absolute()
        try:
            if self._anything and root.is_dir() and not (root / self._layout.config).is_file():
                files = _list_files(root, MOST_FILES)
                return as_it_is(asked.source, root, files, _fingerprint(root, files))
        except OSError as error:
            raise _unreadable(error) from None
        _require_config(root, self._layout.config)
        family, chosen, skipped = self._layout.choose(_list_files(root))
        try:
            chosen, skipped = keep_indexed(root, family, chosen, skipped)
            parts = weigh_here(root, family, chosen)
            size = announced(root, family, chosen)
            revision = _fingerprint(root, chosen)
        except OSError as error:
            raise _unreadable(error) from None
        return ResolvedModel(
            source=asked.source,
            revision=revision,
            path=str(root),
            staged=True,
            files=chosen,
            skipped=skipped,
            weights=summarize(family, (part.summary for part in parts), size),
            headers=join_headers(parts),
            **dict(describe(root, self._layout, trust_remote_code=asked.trust_remote_code)),
        )

    def stage(
        self,
        model: ResolvedModel,
        on_progress: Callable[[int, int], None],
        *,
        deadline_seconds: float | None = None,  # noqa: ARG002
    ) -> ResolvedModel:
        """Check that the files are still there: nothing has to be downloaded.

        Raises:
            Failure: `SOURCE_INCOMPLETE` when a file is gone or has another size.
        """
        for file in model.files:
            path = Path(model.path, file.name)
            try:
                size = path.stat().st_size
            except OSError as error:
                raise _unreadable(error) from None
            if size != file.size:
                detail = f"{path} has {size:,} bytes, {file.size:,} when the model was resolved"
                raise Failure(Cause.SOURCE_INCOMPLETE, detail)
        on_progress(model.bytes_to_stage, model.bytes_to_stage)
        return model


def _require_config(root: Path, config: str) -> None:
    if not root.is_dir():
        raise Failure(
            Cause.SOURCE_MISSING,
            f"{root} is a file, not a directory" if root.exists() else f"there is no {root}",
            suggestion=_similar(root),
        )
    # Before the listing: a wrong path such as / would be listed for hours.
    if not (root / config).is_file():
        raise Failure(Cause.SOURCE_INCOMPLETE, f"there is no {config} in {root}")


def _similar(root: Path) -> str | None:
    """Suggest the directory beside the missing one whose name comes closest."""
    try:
        beside = [path.name for path in root.parent.iterdir() if path.is_dir()]
    except OSError:
        return f"There is no {root.parent} either." if not root.parent.exists() else None
    close = get_close_matches(root.name, beside, n=1)
    return f"Did you mean {SCHEME}{root.parent / close[0]}?" if close else None


def _list_files(root: Path, most: int = 0) -> tuple[ModelFile, ...]:
    """List regular files and links to them, such as the hub client's own cache has; 0 = all."""

    def refuse(error: OSError) -> None:
        raise _unreadable(error) from None

    paths: list[Path] = []
    for folder, below, names in os.walk(root, onerror=refuse):
        below[:] = [name for name in below if not name.startswith(".")]
        paths += (Path(folder, name) for name in names if not name.startswith("."))
        if most and len(paths) > most:
            detail = f"there are more than {most:,} files in {root}"
            raise Failure(Cause.SOURCE_INCOMPLETE, detail)
    return tuple(_file(root, path) for path in sorted(paths) if _is_regular(path))


def _is_regular(path: Path) -> bool:
    return path.is_file() or path.is_symlink()


def _file(root: Path, path: Path) -> ModelFile:
    try:
        size, real = path.stat().st_size, path.resolve()
    except OSError as error:
        raise _unreadable(error) from None
    outside = "" if real.is_relative_to(root.resolve()) else str(real)
    if outside and is_of_the_system(outside):
        # It would be mounted into the engine's container.
        raise Failure(Cause.SOURCE_INCOMPLETE, f"{path} is a link to {real}, which is no model's")
    return ModelFile(name=path.relative_to(root).as_posix(), size=size, target=outside)


def _fingerprint(root: Path, files: Iterable[ModelFile]) -> str:
    digest = hashlib.sha256()
    for file in files:
        changed = (root / file.name).stat().st_mtime_ns
        digest.update(f"{file.name}\0{file.size}\0{changed}\0".encode())
    return f"local-{digest.hexdigest()[:12]}"


def _unreadable(error: OSError) -> Failure:
    path = Path(os.fsdecode(error.filename or ""))
    if path.is_symlink() and not path.exists():
        return Failure(Cause.SOURCE_INCOMPLETE, f"{path} is a link to nothing")
    return Failure(Cause.SOURCE_INCOMPLETE, f"{path} cannot be read: {error.strerror}")
