"""Facts about weight files: from the header of a safetensors file, else only the file size.

An unreadable header is an error. It is never counted as zero bytes.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.printable import short
from moorage.common.units import MIB
from moorage.models.source import ModelFile, TensorHeaders, WeightSummary

LENGTH_BYTES = 8
"""A safetensors file starts with the length of its header: 64 bits, little-endian."""

LONGEST_HEADERS = 64 * MIB
"""Most bytes of the headers of all weight files of a model."""

LONGEST_HEADER = 32 * MIB
"""Most bytes of one header. The format allows 100 MB; 90,000 tensors in one file need 12 MB."""

MOST_TENSORS = 150_000
"""Most tensors of one file."""

VALUES_EACH, OTHER_VALUES = 16, 1_000_000
"""Most commas and brackets of one tensor in a header, and of the metadata."""

MOST_DIMENSIONS = 32
MOST_DTYPES = 64
LARGEST = 1 << 63
LONGEST_NAME = 1024
DTYPE = re.compile(r"[A-Z0-9_]{1,32}")

LEAST_SHARE = 0.9
"""Smallest share of tensors in the bytes of a pickled file."""

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
"""Bits of one element by dtype. Tensors of other dtypes are counted by their offsets."""


@dataclass(frozen=True)
class FileWeights:
    """Facts from one weight file.

    Attributes:
        tensors: Element type and shape by tensor name; empty where the format has no header.
        folder: The file's folder inside the model, which belongs to a module that follows the
            model; empty = the top folder.
        metadata: Entries of the header of a GGUF file; empty for other formats.
        parts: Bytes of the tensors of a GGUF file, by the part of the model: `blk.0`, `token_embd`,
            `output`, ...
    """

    summary: WeightSummary
    tensors: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    folder: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, int] = field(default_factory=dict)


def header_end(start: bytes, file: ModelFile) -> int:
    """Offset of the first byte after the header of a safetensors file.

    `start` is at least the first 8 bytes of the file.

    Raises:
        Failure: `SOURCE_CORRUPT` when no safetensors file starts like this, `SOURCE_INCOMPLETE`
            when it is a Git LFS pointer.
    """
    if len(start) < LENGTH_BYTES:
        raise _malformed(file, "it is too short to have a header")
    end = LENGTH_BYTES + int.from_bytes(start[:LENGTH_BYTES], "little")
    if start.startswith(b"version "):
        why = "it is a Git LFS pointer; `git lfs pull` fetches the weights"
        raise _malformed(file, why, Cause.SOURCE_INCOMPLETE)
    if end > min(file.size, LENGTH_BYTES + LONGEST_HEADER):
        raise _malformed(file, f"its header would end at byte {end:,} of {file.size:,}")
    return end


def read_header(data: bytes, file: ModelFile) -> FileWeights:
    """Parse the header of one safetensors file.

    `data` is the file from its first byte to the end of its header.

    Raises:
        Failure: `SOURCE_CORRUPT` when the header is malformed or contradicts the file's size.
    """
    header = _decoded(data[LENGTH_BYTES:], file)
    spans: list[tuple[int, int]] = []
    by_dtype: Counter[str] = Counter()
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {}
    while header:
        # Parsed entries are dropped: a large header takes a lot of memory.
        name, entry = header.popitem()
        begin, end = _span(name, entry, file)
        spans.append((begin, end))
        by_dtype[entry["dtype"]] += end - begin
        tensors[name] = entry["dtype"], tuple(entry["shape"])
    if len(by_dtype) > MOST_DTYPES:
        raise _malformed(file, f"its header has {len(by_dtype):,} types of elements")
    _require_whole(spans, file.size - len(data), file)
    total, number = by_dtype.total(), len(spans)
    summary = WeightSummary(
        family="safetensors", bytes=total, tensors=number, bytes_by_dtype=dict(by_dtype)
    )
    return FileWeights(summary, dict(reversed(tensors.items())), file.name.rpartition("/")[0])


def join_headers(parts: Iterable[FileWeights]) -> TensorHeaders:
    """The headers of all weight files of one model; a file's folder prefixes its tensor names."""
    return TensorHeaders(
        (f"{part.folder}.{name}" if part.folder else name, dtype, shape)
        for part in parts
        for name, (dtype, shape) in part.tensors.items()
    )


def summarize(
    family: str, parts: Iterable[WeightSummary], announced: int | None = None
) -> WeightSummary:
    """Add up the summaries of the weight files of one model.

    The bytes that an index announces count only where the format has no header, and only if they
    agree with the size of the files.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when the files hold no tensors.
    """
    tensors = total = 0
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


def _decoded(text: bytes, file: ModelFile) -> dict[str, Any]:
    """The decoded header. Counting its values before decoding, and checking each entry's shape
    afterwards, is faster than `strict_json`, and as strict."""
    tensors = text.count(b'"data_offsets"')
    if tensors > MOST_TENSORS:
        raise _malformed(file, f"its header has {tensors:,} tensors, more than {MOST_TENSORS:,}")
    if sum(map(text.count, (b",", b"[", b"{"))) > VALUES_EACH * tensors + OTHER_VALUES:
        raise _malformed(file, "its header has more values than its tensors need")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _malformed(file, f"its header is not JSON ({error})") from None
    if not isinstance(header, dict):
        raise _malformed(file, "its header is not a JSON object")
    header.pop("__metadata__", None)
    return header


def _span(name: str, entry: Any, file: ModelFile) -> tuple[int, int]:
    try:
        dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        if len(name) > LONGEST_NAME or not name.isprintable():
            raise ValueError
        if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS:
            raise ValueError
        elements = prod(map(_natural, shape))
        size = _natural(end) - _natural(begin)
    except (KeyError, TypeError, ValueError):
        raise _malformed(file, f"its header does not describe tensor '{short(name)}'") from None
    known = isinstance(dtype, str) and DTYPE.fullmatch(dtype)
    bits = BITS.get(dtype) if known else 0
    if size < 0 or bits == 0 or (bits is not None and (elements * bits + 7) // 8 != size):
        of = short(f"{dtype if known else 'no type'} {shape}")
        raise _malformed(file, f"tensor '{short(name)}' ({of}) cannot have {size:,} bytes")
    return begin, end


def _natural(number: Any) -> int:
    if type(number) is not int or not 0 <= number < LARGEST:
        raise ValueError
    return number


def _require_whole(spans: list[tuple[int, int]], room: int, file: ModelFile) -> None:
    last = max((end for _, end in spans), default=0)
    if last != room:
        raise _malformed(file, f"it holds {room:,} bytes of tensors, its header says {last:,}")
    if any(before[1] != after[0] for before, after in pairwise([(0, 0), *sorted(spans)])):
        raise _malformed(file, "its tensors overlap or leave a hole")


def _malformed(file: ModelFile, why: str, cause: Cause = Cause.SOURCE_CORRUPT) -> Failure:
    return Failure(cause, f"{file.name} is not a whole safetensors file: {why}")
