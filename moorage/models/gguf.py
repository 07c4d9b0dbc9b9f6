"""The header of a GGUF file: its metadata, its tensors, and their quantized types.

Source: the format's specification (`docs/gguf.md` of ggml), versions 2 and 3.
"""

import re
import struct
from collections import Counter
from itertools import pairwise
from math import prod

from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile, WeightSummary
from moorage.models.weights import FileWeights

MAGIC = b"GGUF"
VERSIONS = (2, 3)

BLOCKS: dict[int, tuple[str, int, int]] = {
    **{0: ("F32", 1, 4), 1: ("F16", 1, 2), 28: ("F64", 1, 8), 30: ("BF16", 1, 2)},
    **{24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8)},
    **{2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24)},
    **{8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 20: ("IQ4_NL", 32, 18), 39: ("MXFP4", 32, 17)},
    **{10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144)},
    **{13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292)},
    **{16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98)},
    **{19: ("IQ1_S", 256, 50), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82)},
    **{23: ("IQ4_XS", 256, 136), 29: ("IQ1_M", 256, 56)},
    **{34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66)},
    **{40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18), 42: ("Q2_0", 64, 18)},
}
"""Types of tensors by number: name, elements per block, bytes per block."""

UNKNOWN = "unknown"
"""Name of the types that are not listed, such as newer ones."""

FORMATS = {**dict(enumerate("BbHhIif?")), 10: "Q", 11: "q", 12: "d"}
"""Types of metadata with a fixed size, as format characters of `struct`."""

WIDTHS = {kind: struct.calcsize(f"<{letter}") for kind, letter in FORMATS.items()}

STRING, ARRAY = 8, 9
MOST_DIMENSIONS = 4
MOST_TENSORS = 250_000
MOST_ENTRIES = 65_536
MOST_VALUES = 2_000_000
"""Most values of the metadata that are read one by one. A vocabulary has 200,000 texts."""

ARRAY_VALUES = 20
"""Number of values that an array inside an array counts as."""

DEEPEST = 4
"""Most levels of nested arrays."""

LONGEST_TEXT = 256
"""Most bytes of a text that is kept."""

LONGEST_LIST = 1024
"""Most numbers of an array that is kept: there may be one for each layer."""

PART = re.compile(r"blk\.\d{1,3}(?=\.)|token_embd(?=\.)|output(?=\.)|")
"""The part of the model at the beginning of a tensor's name; empty for any other part."""

Scalar = int | float | bool | str
Metadata = dict[str, Scalar | list[Scalar]]
"""Entries of a header: a text beyond the limit as an empty one, such an array as its length."""

LENGTH = struct.Struct("<Q")


class NeedsMore(Exception):
    """The header is longer than the bytes that were read."""


def read_gguf(data: bytes | bytearray, file: ModelFile) -> FileWeights:
    """Parse the header of one GGUF file; `data` is the beginning of the file.

    Raises:
        NeedsMore: When the header is longer than `data`.
        Failure: `SOURCE_CORRUPT` when it is not a GGUF file, or not a complete one.
    """
    reader = _Reader(data, file)
    if reader.take(4) != MAGIC or reader.number("I") not in VERSIONS:
        raise _malformed(file, "it does not start like one")
    count, entries = reader.number("Q"), reader.number("Q")
    _require_count(count, MOST_TENSORS, "tensors", file)
    _require_count(entries, MOST_ENTRIES, "entries of metadata", file)
    metadata: Metadata = {}
    for _ in range(entries):
        key = reader.text()
        metadata[key] = reader.value(reader.number("I"))
    sizes: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    tensors = [reader.tensor() for _ in range(count)]
    ends = dict(pairwise(sorted({*(start for *_, start in tensors), reader.room})))
    for name, number, elements, start in tensors:
        kind, block, size = BLOCKS.get(number, (UNKNOWN, 1, 0))
        # Without a block, a tensor takes the bytes up to the next one.
        size = -(-elements // block) * size if size else ends.get(start, start) - start
        sizes[kind] += size
        parts[part.group() if (part := PART.match(name)) else ""] += size
    if sizes.total() > reader.room:
        raise _malformed(file, f"{reader.room:,} bytes cannot hold {sizes.total():,} of tensors")
    summary = WeightSummary(
        family="gguf", bytes=sizes.total(), tensors=count, bytes_by_dtype=dict(sizes)
    )
    return FileWeights(summary, metadata=metadata, parts=parts)


class _Reader:
    def __init__(self, data: bytes | bytearray, file: ModelFile) -> None:
        self._data = data
        self._file = file
        self._at = 0
        self._values = 0

    @property
    def room(self) -> int:
        """Bytes from the current position to the end of the file."""
        return self._file.size - self._at

    def take(self, size: int) -> bytes | bytearray:
        """Return the next bytes, and advance."""
        start = self._at
        self.skip(size)
        return self._data[start : self._at]

    def skip(self, size: int) -> None:
        """Advance by some bytes."""
        self._at += size
        if self._at > self._file.size:
            raise _malformed(self._file, "its header extends beyond its end")
        if self._at > len(self._data):
            raise NeedsMore

    def number(self, kind: str) -> int:
        """Read the next number: `I` has 32 bits, `Q` has 64."""
        (value,) = struct.unpack(f"<{kind}", self.take(struct.calcsize(kind)))
        return int(value)

    def text(self) -> str:
        """Read the next text; empty where it is too long to keep."""
        size = self.number("Q")
        if size > LONGEST_TEXT:
            self.skip(size)
            return ""
        return bytes(self.take(size)).decode(errors="replace")

    def value(self, kind: int, depth: int = 0) -> Scalar | list[Scalar]:
        """Read the next value of the metadata."""
        if kind == STRING:
            self._count(1)
            return self.text()
        if kind == ARRAY:
            if depth == DEEPEST:
                raise _malformed(self._file, f"its arrays are nested more than {DEEPEST} deep")
            return self._array(self.number("I"), self.number("Q"), depth + 1)
        if kind not in FORMATS:
            raise _malformed(self._file, f"its metadata has a value of the unknown type {kind}")
        (value,) = struct.unpack(f"<{FORMATS[kind]}", self.take(WIDTHS[kind]))
        return value  # type: ignore[no-any-return]

    def _array(self, kind: int, count: int, depth: int) -> int | list[Scalar]:
        if kind in WIDTHS:
            if count <= LONGEST_LIST:
                self._count(count)
                size = WIDTHS[kind] * count
                return list(struct.unpack(f"<{count}{FORMATS[kind]}", self.take(size)))
            self.skip(WIDTHS[kind] * count)
            return count
        self._count(count if kind == STRING else ARRAY_VALUES * count)
        if kind == STRING:
            self._skip_texts(count)
        else:
            for _ in range(count):
                self.value(kind, depth)
        return count

    def _count(self, values: int) -> None:
        self._values += values
        _require_count(self._values, MOST_VALUES, "values in its arrays", self._file)

    def _skip_texts(self, count: int) -> None:
        """Skip texts; each follows its length."""
        data, at, last = self._data, self._at, len(self._data) - LENGTH.size
        for _ in range(count):
            if at > last:
                self._at = at
                self.skip(LENGTH.size)
            at += LENGTH.size + LENGTH.unpack_from(data, at)[0]
        self._at = at
        self.skip(0)

    def tensor(self) -> tuple[str, int, int, int]:
        """Read name, type, number of elements and offset of the next tensor."""
        title = self.text()
        dimensions = self.number("I")
        if dimensions > MOST_DIMENSIONS:
            raise _malformed(self._file, f"a tensor has {dimensions} dimensions")
        elements = prod(self.number("Q") for _ in range(dimensions))
        return title, self.number("I"), elements, self.number("Q")


def _require_count(number: int, most: int, what: str, file: ModelFile) -> None:
    if number > most:
        raise _malformed(file, f"it has {number:,} {what}, more than {most:,}")


def _malformed(file: ModelFile, why: str) -> Failure:
    return Failure(Cause.SOURCE_CORRUPT, f"{file.name} is not a whole GGUF file: {why}")
