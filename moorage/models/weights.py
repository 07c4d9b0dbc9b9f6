"""What weight files tell about themselves: the header of a safetensors file, else only their size.

A header that cannot be read is an error. It is never counted as zero bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from moorage.failures import Cause, Failure
from moorage.models.source import ModelFile, WeightSummary
from moorage.models.tensors import TensorHeaders

LENGTH_BYTES = 8
"""A safetensors file starts with the length of its header, as 64 bits, little-endian."""

LONGEST_HEADER = 100_000_000
"""Bytes; the format allows no more."""

LEAST_SHARE = 0.9
"""Share of a pickled file that is tensors, at least."""

BITS = {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 8),
    **dict.fromkeys(("F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}
"""Bits of one element by dtype. One that is missing here is still counted, from its offsets."""


@dataclass(frozen=True)
class FileWeights:
    """What one weight file tells.

    Attributes:
        summary: Its bytes.
        tensors: Element type and shape by tensor name; empty where the format has no header.
        folder: Folder of the model in which it lies, empty at the top: what is there belongs to a
            module behind the model.
    """

    summary: WeightSummary
    tensors: Mapping[str, tuple[str, tuple[int, ...]]]
    folder: str = ""


def header_end(start: bytes, file: ModelFile) -> int:
    """Tell where the header of a safetensors file ends.

    Args:
        start: At least the first 8 bytes of the file.
        file: The file, for its size and for messages.

    Returns:
        Offset of the first byte after the header.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when no safetensors file starts like this.
    """
    if len(start) < LENGTH_BYTES:
        raise _malformed(file, "it is too short to have a header")
    end = LENGTH_BYTES + int.from_bytes(start[:LENGTH_BYTES], "little")
    if start.startswith(b"version "):
        raise _malformed(file, "it is a Git LFS pointer; `git lfs pull` fetches the weights")
    if end > min(file.size, LENGTH_BYTES + LONGEST_HEADER):
        raise _malformed(file, f"its header would end at byte {end:,} of {file.size:,}")
    return end


def read_header(data: bytes, file: ModelFile) -> FileWeights:
    """Read the header of one safetensors file.

    Args:
        data: The file from its first byte to the end of its header.
        file: The file, for its size and for messages.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when the header is malformed or speaks of another size.
    """
    try:
        header = json.loads(data[LENGTH_BYTES:])
    except (ValueError, RecursionError) as error:
        raise _malformed(file, f"its header is not JSON ({error})") from None
    if not isinstance(header, dict):
        raise _malformed(file, "its header is not a JSON object")
    header.pop("__metadata__", None)
    spans = [_span(name, entry, file) for name, entry in header.items()]
    _require_whole(spans, file.size - len(data), file)
    by_dtype: Counter[str] = Counter()
    for (begin, end), entry in zip(spans, header.values(), strict=True):
        by_dtype[entry["dtype"]] += end - begin
    summary = WeightSummary(
        family="safetensors",
        bytes=by_dtype.total(),
        tensors=len(spans),
        bytes_by_dtype=dict(by_dtype),
    )
    tensors = {
        name: (entry["dtype"], tuple(map(int, entry["shape"]))) for name, entry in header.items()
    }
    return FileWeights(summary, tensors, file.name.rpartition("/")[0])


def from_size(family: str, file: ModelFile) -> FileWeights:
    """A file whose format has no header: its size is what is known."""
    return FileWeights(WeightSummary(family=family, bytes=file.size), {})


def join_headers(parts: Iterable[FileWeights]) -> TensorHeaders:
    """The headers of all weight files of one model; those in folders under the folder's name."""
    return TensorHeaders(
        (f"{part.folder}.{name}" if part.folder else name, dtype, shape)
        for part in parts
        for name, (dtype, shape) in part.tensors.items()
    )


def summarize(
    family: str, parts: Iterable[WeightSummary], announced: int | None = None
) -> WeightSummary:
    """Add up the summaries of the weight files of one model.

    Args:
        family: Format of the weights.
        parts: One for each file.
        announced: Bytes of all tensors that an index announces. It is believed only where the
            format has no header, and only if the files can hold so much.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when they hold nothing at all.
    """
    tensors = 0
    total = 0
    by_dtype: Counter[str] = Counter()
    for part in parts:
        total += part.bytes
        tensors += part.tensors
        by_dtype.update(part.bytes_by_dtype)
    if not total:
        raise Failure(Cause.SOURCE_INCOMPLETE, "the weight files hold no tensors")
    if announced and not tensors and total * LEAST_SHARE <= announced <= total:
        total = announced
    return WeightSummary(
        family=family, bytes=total, tensors=tensors, bytes_by_dtype=dict(sorted(by_dtype.items()))
    )


def _span(name: str, entry: Any, file: ModelFile) -> tuple[int, int]:
    try:
        dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        elements = prod(_natural(length) for length in shape)
        size = _natural(end) - _natural(begin)
    except (KeyError, TypeError, ValueError):
        raise _malformed(file, f"its header does not describe tensor {name!r}") from None
    bits = BITS.get(dtype) if isinstance(dtype, str) else 0
    if size < 0 or bits == 0 or (bits is not None and (elements * bits + 7) // 8 != size):
        raise _malformed(file, f"tensor {name!r} ({dtype} {shape}) cannot have {size:,} bytes")
    return begin, end


def _natural(number: Any) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(number)
    return number


def _require_whole(spans: list[tuple[int, int]], room: int, file: ModelFile) -> None:
    last = max((end for _, end in spans), default=0)
    if last != room:
        raise _malformed(file, f"it holds {room:,} bytes of tensors, its header says {last:,}")
    ordered = sorted(spans)
    if any(before[1] != after[0] for before, after in pairwise([(0, 0), *ordered])):
        raise _malformed(file, "its tensors overlap or leave a hole")


def _malformed(file: ModelFile, why: str) -> Failure:
    return Failure(Cause.SOURCE_INCOMPLETE, f"{file.name} is not a whole safetensors file: {why}")
