"""Models in a directory of this machine: read in place, never copied."""

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from moorage.adapters.files.safe_files import require_regular
from moorage.adapters.sources.describe import describe, keep_indexed, weigh_here
from moorage.adapters.sources.store import MOST_FILES, require_name
from moorage.common.failures import Cause, Failure
from moorage.common.printable import short
from moorage.inventory.model_store import local_path
from moorage.models.assets import Asset
from moorage.models.files import MODEL, ONE_PROJECTOR, PIPELINE, SHARD, Layout, lacks_config
from moorage.models.source import ModelFile, ResolvedModel, WeightSummary
from moorage.models.weights import join_headers, summarize
from moorage.spec.patterns import is_of_the_system

MOST_NEIGHBOURS = 1000
LONGEST_PATH = 1000
DEEPEST = 32
"""Limit of the depth of nested folders."""

WEIGHED = (".safetensors", ".gguf")
"""Files that may be links to any place: they must have the header of weights, as no secret has."""


class LocalSource:
    """Directories named by `file://`.

    Args:
        layout: Kind of content that a directory should have.
        anything: Whether a directory without a configuration is accepted: only the engine has to
            understand it.
    """

    def __init__(self, layout: Layout = MODEL, *, anything: bool = False) -> None:
        self._layout, self._anything = layout, anything

    def files(self, wanted: Asset) -> tuple[ModelFile, ...]:
        """All files of a directory, none if `resolve` finds no model; raises as `resolve`."""
        root = _path(wanted.source)
        try:
            return _list_files(root) if _holds_model(root, self._layout) else ()
        except OSError as error:
            raise _unreadable(error) from None

    def resolve(self, wanted: Asset) -> ResolvedModel:
        """Read the model's metadata. Its revision is a fingerprint of names, sizes and times.

        Raises:
            Failure: `SOURCE_MISSING` when there is no such directory, `SOURCE_INCOMPLETE` when a
                file is missing or unreadable, `SOURCE_CORRUPT` when a file is malformed or not
                regular, `CONFIG_UNREADABLE`.
        """
        root = _path(wanted.source)
        config = root / self._layout.config
        try:
            if root.name.endswith(".gguf") and root.is_file():
                root, listed = root.parent, _parts_of(root)
            elif self._anything and root.is_dir() and not os.path.lexists(config):
                return _model_of_files(wanted.source, root)
            else:
                _require_config(root, self._layout)
                listed = _list_files(root)
            family, chosen, skipped = self._layout.choose(listed, wanted.files or "")
            passed = {one.name for one in skipped if one.reason.startswith(ONE_PROJECTOR)}
            chosen, skipped, size = keep_indexed(root, family, chosen, skipped)
            parts = weigh_here(root, family, chosen)
            # The other projectors count too: which one is loaded is a choice, no change of files.
            names = passed | {one.name for one in chosen}
            fingerprinted = tuple(one.name for one in listed if one.name in names)
            revision = _fingerprint(root, fingerprinted)
        except OSError as error:
            raise _unreadable(error) from None
        return ResolvedModel(
            source=wanted.source,
            revision=revision,
            path=str(root),
            staged=True,
            files=chosen,
            skipped=skipped,
            fingerprinted=fingerprinted,
            weights=summarize(family, (part.summary for part in parts), size),
            headers=join_headers(parts),
            **describe(root, self._layout, parts, trust_remote_code=wanted.trust_remote_code),
        )

    def lacking_room(self, model: ResolvedModel) -> str:  # noqa: ARG002
        """Nothing is downloaded, so the disk lacks no space."""
        return ""

    def stage(
        self,
        model: ResolvedModel,
        on_progress: Callable[[int, int], None],
        *,
        deadline_seconds: float | None = None,  # noqa: ARG002
    ) -> ResolvedModel:
        """Download nothing; raise `SOURCE_INCOMPLETE` for a file that is missing or has changed."""
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


def revision_now(source: str, names: Iterable[str]) -> str:
    """The fingerprint that these files of a local source have now; empty = one cannot be read."""
    root = _path(source)
    if root.name.endswith(".gguf") and root.is_file():
        root = root.parent
    try:
        return _fingerprint(root, names)
    except OSError:
        return ""


def _path(source: str) -> Path:
    return Path(local_path(source)).expanduser().absolute()


def _require_config(root: Path, layout: Layout) -> None:
    if not root.is_dir():
        raise Failure(
            Cause.SOURCE_MISSING,
            f"{root} is a file, not a directory" if root.exists() else f"there is no {root}",
            suggestion=_similar(root),
        )
    # Before the listing, which would take long for a wrong path such as `/`.
    if not _holds_model(root, layout):
        raise lacks_config(f"{layout.config} in {root}", os.path.lexists(root / PIPELINE))


def _similar(root: Path) -> str:
    """Suggest the sibling of the missing model with the most similar name."""
    try:
        entries = islice(root.parent.iterdir(), MOST_NEIGHBOURS)
        siblings = [
            path.name
            for path in entries
            if path.name.isprintable() and (path.name.endswith(".gguf") or path.is_dir())
        ]
    except OSError:
        missing = f"Correct the path: there is no {root.parent} either."
        return "Correct the path." if root.parent.exists() else missing
    close = get_close_matches(root.name, siblings, n=1)
    return f"Did you mean file://{root.parent / close[0]}?" if close else "Correct the path."


def _holds_model(root: Path, layout: Layout) -> bool:
    # Reading the configuration later shows whether it is valid.
    return any(root.glob("*.gguf")) or os.path.lexists(root / layout.config)


def _fingerprint(root: Path, names: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        found = (root / name).stat()
        digest.update(f"{name}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    return f"local-{digest.hexdigest()[:12]}"


def _unreadable(error: OSError) -> Failure:
    path = Path(os.fsdecode(error.filename or ""))
    named = short(str(path), LONGEST_PATH)
    if error.errno == errno.ELOOP:
        return Failure(Cause.SOURCE_CORRUPT, f"{named} is a link that leads in a circle")
    if path.is_symlink() and not path.exists():
        return Failure(Cause.SOURCE_INCOMPLETE, f"{named} is a link to nothing")
    return Failure(Cause.SOURCE_INCOMPLETE, f"{named} cannot be read: {error.strerror}")


def _model_of_files(source: str, root: Path) -> ResolvedModel:
    """The model of a custom engine: all files, with their total size as the size of weights."""
    files = _list_files(root, anywhere=())
    size, names = sum(file.size for file in files), tuple(file.name for file in files)
    if not size:
        raise Failure(Cause.SOURCE_INCOMPLETE, f"there is nothing in {root}")
    return ResolvedModel(
        source=source,
        revision=_fingerprint(root, names),
        path=str(root),
        staged=True,
        files=files,
        fingerprinted=names,
        config={},
        config_origin="none: there is no config.json",
        weights=WeightSummary(family="files", bytes=size),
    )


def _parts_of(path: Path) -> tuple[ModelFile, ...]:
    """A GGUF file with the other parts of its model, without other files of its folder.

    Each has its real path as target, so that an engine's container gets no other files.
    """
    root, model = path.parent, SHARD.sub("", path.name)
    found = sorted(one.name for one in root.glob("*.gguf") if SHARD.sub("", one.name) == model)
    files = [_file(root, root.resolve(), require_name(name)) for name in found]
    return tuple(
        file.model_copy(update={"target": file.target or f"{root}/{file.name}"}) for file in files
    )


def _list_files(root: Path, anywhere: tuple[str, ...] = WEIGHED) -> tuple[ModelFile, ...]:
    """List regular files and links to them, as in the hub client's own cache.

    Hidden files and folders are left out. `anywhere` are endings of files that may be links out
    of the directory; any other such link is refused.
    """
    base = root.resolve()
    names = sorted(_names(root), key=lambda name: name.split("/"))
    return tuple(_file(root, base, name, anywhere) for name in names)


def _names(root: Path) -> Iterator[str]:
    """Paths of files below the directory. Links to folders are not followed."""
    waiting: list[tuple[str, int]] = [("", 1)]
    seen = 0
    while waiting:
        folder, depth = waiting.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                seen += 1
                if seen > MOST_FILES:
                    raise _corrupt(f"there are more than {MOST_FILES:,} files in {root}")
                if entry.name.startswith("."):
                    continue
                name = require_name(f"{folder}/{entry.name}" if folder else entry.name)
                if not entry.is_dir(follow_symlinks=False):
                    if not entry.is_dir():
                        yield name
                elif depth == DEEPEST:
                    raise _corrupt(f"the folders in {root} are more than {DEEPEST} deep")
                else:
                    waiting.append((name, depth + 1))


def _file(root: Path, base: Path, name: str, anywhere: tuple[str, ...] = WEIGHED) -> ModelFile:
    path = root / name
    found = path.stat()
    require_regular(path, found)
    real = Path(os.path.realpath(path))
    outside = "" if real.is_relative_to(base) else str(real)
    known = name.endswith(anywhere) or _is_blob(base, real)
    if outside and (is_of_the_system(outside) or not known):
        # The file would be mounted into the engine's container, or sent to a host.
        advice = "Put the file itself there, or name the directory that has the whole model."
        why = f"{path} is a link to {real}, out of the model's directory"
        raise Failure(Cause.SOURCE_CORRUPT, why, suggestion=advice)
    return ModelFile(name=name, size=found.st_size, target=require_name(outside) if outside else "")


def _is_blob(base: Path, real: Path) -> bool:
    """Whether a file is one of the same model in the hub client's cache: `snapshots` link to it."""
    folders = (one.parent / "blobs" for one in base.parents if one.name == "snapshots")
    return any(real.is_relative_to(os.path.realpath(one)) for one in folders)


def _corrupt(why: str) -> Failure:
    return Failure(
        Cause.SOURCE_CORRUPT, why, suggestion="Name the directory of one model, and nothing else."
    )
