"""The index of a model's weights: which files hold its tensors, and how large these are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.printable import short
from moorage.common.strict_json import JsonError, JsonLimits, decode
from moorage.common.units import MIB
from moorage.models.files import NAMES_SHOWN, Split, folder_of, is_weight, split
from moorage.models.source import ModelFile, SkippedFile

INDEX_LIMITS = JsonLimits(size=64 * MIB, depth=8, entries=600_000)
"""An index has a line for each tensor: 9 MB for 90,000 tensors."""

LARGEST_TOTAL = 1 << 63
LONGEST_NAME = 1024


@dataclass(frozen=True, slots=True)
class Index:
    """The weight files that an index names, by their paths inside the model.

    `total_size` is the bytes of all tensors; None = not in the index.
    """

    files: frozenset[str]
    total_size: int | None = None


def index_files(family: str, chosen: Sequence[ModelFile]) -> tuple[str, ...]:
    """The names of the chosen files that list the weight files of a family."""
    return tuple(file.name for file in chosen if file.name.endswith(f".{family}.index.json"))


def read_index(name: str, content: bytes) -> Index:
    """Parse an index of weight files; `name` is its path inside the model.

    Raises:
        Failure: `SOURCE_CORRUPT` when it is malformed or exceeds `INDEX_LIMITS`.
    """
    try:
        index = decode(content, INDEX_LIMITS)
    except JsonError as error:
        raise _no_index(name, str(error)) from None
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict):
        raise _no_index(name, "has no `weight_map`")
    try:
        files = frozenset(weight_map.values())
    except TypeError:
        raise _no_index(name, "names a file that is no text") from None
    for file in files:
        if not isinstance(file, str) or not file.isprintable() or len(file) > LONGEST_NAME:
            raise _no_index(name, f"names a file {short(repr(file))}")
    folder = PurePosixPath(folder_of(name))
    return Index(frozenset(str(folder / file) for file in files), _total_size(name, index))


def follow_indexes(
    chosen: Sequence[ModelFile], skipped: Sequence[SkippedFile], indexes: Mapping[str, Index]
) -> Split:
    """Keep the weight files that the indexes name: engines load no others of an indexed folder.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when an index names missing files.
    """
    wanted = frozenset().union(*(index.files for index in indexes.values()))
    if missing := sorted(wanted - {file.name for file in chosen}):
        more = f" and {len(missing) - NAMES_SHOWN} more" if missing[NAMES_SHOWN:] else ""
        listed = ", ".join(map(short, missing[:NAMES_SHOWN])) + more
        detail = f"{', '.join(indexes)} names missing files: {listed}"
        raise Failure(Cause.SOURCE_INCOMPLETE, detail)
    folders = {folder_of(name): name for name in indexes}
    reasons = {
        file.name: f"not named by {folders[folder_of(file.name)]}"
        for file in chosen
        if is_weight(file.name) and folder_of(file.name) in folders and file.name not in wanted
    }
    kept, left = split(chosen, reasons)
    return kept, (*skipped, *left)


def announced_size(indexes: Iterable[Index]) -> int | None:
    """Bytes of all tensors, according to the indexes; None where an index lacks the number."""
    sizes = [index.total_size for index in indexes]
    return sum(size for size in sizes if size) if sizes and all(sizes) else None


def _total_size(name: str, index: Mapping[str, Any]) -> int | None:
    metadata = index.get("metadata")
    size = metadata.get("total_size") if isinstance(metadata, dict) else None
    if not isinstance(size, int | float):
        return None
    if not 0 <= size < LARGEST_TOTAL:
        raise _no_index(name, f"has metadata.total_size {short(str(size))}")
    return int(size)


def _no_index(name: str, why: str) -> Failure:
    return Failure(Cause.SOURCE_CORRUPT, f"{name} is not an index of weights: it {why}")
