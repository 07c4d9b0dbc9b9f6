"""Reads what a model is from its files, in a directory or at a remote source."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from moorage.adapters.files.pretrained import read_config
from moorage.adapters.files.safe_files import read_json, read_part, read_whole
from moorage.common.failures import Cause, Failure
from moorage.common.strict_json import LIMITS, JsonLimits
from moorage.common.units import MIB, human_bytes
from moorage.models.assets import require_lora
from moorage.models.config import require_limits
from moorage.models.files import (
    ADAPTER,
    INDEX_LIMITS,
    MODEL,
    Layout,
    announced_size,
    follow_indexes,
    index_files,
    is_weight,
    read_index,
)
from moorage.models.gguf import GgufHeader, NeedsMore, read_gguf
from moorage.models.gguf_config import (
    ARCHITECTURE,
    PROJECTOR,
    gguf_adapter_config,
    gguf_config,
    has_template,
)
from moorage.models.source import ModelFile, SkippedFile
from moorage.models.weights import LONGEST_HEADERS, FileWeights, from_size, header_end, read_header

FIRST_READ = 65_536
"""Bytes of a weight file to read at once; most headers are shorter."""

GROWTH = 4
"""How many times more is read of a GGUF file, until it is all of its header."""

MOST_TENSORS = 300_000
"""Tensors of a model: 280,000 are the most that is known."""

TOKENIZER_LIMITS = JsonLimits(size=24 * MIB, entries=1_000_000, constants=True)
"""It lists all tokens that were added, 65,000 in models of speech."""

HEADER = "GGUF header"
CHAT_TEMPLATES = ("chat_template.jinja", "chat_template.json")


@dataclass
class HeaderBudget:
    """What the headers of one model may still take, over all of its weight files."""

    size: int = LONGEST_HEADERS
    tensors: int = MOST_TENSORS

    def spend(self, file: ModelFile, *, size: int = 0, tensors: int = 0) -> None:
        """Count a header; raises `SOURCE_CORRUPT` when they are more than any model has."""
        self.size -= size
        self.tensors -= tensors
        if self.size < 0 or self.tensors < 0:
            most = f"{human_bytes(LONGEST_HEADERS)} or {MOST_TENSORS:,} tensors"
            detail = f"{file.name}: with it, the headers of the weights exceed {most}"
            raise Failure(Cause.SOURCE_CORRUPT, detail)


def describe(
    directory: Path,
    layout: Layout = MODEL,
    weights: Sequence[FileWeights] = (),
    *,
    trust_remote_code: bool,
) -> dict[str, Any]:
    """Read the metadata files of a model, or of an adapter; gives fields of `ResolvedModel`.

    Raises:
        Failure: `CONFIG_UNREADABLE` when the configuration cannot be read, `SOURCE_CORRUPT` when
            it or another file is malformed, `SOURCE_INCOMPLETE` when an adapter is no LoRA.
    """
    if layout is not ADAPTER:
        known = _gguf_fields(weights)
        if known and not os.path.lexists(directory / layout.config):
            return known
        config, origin = read_config(directory, trust_remote_code=trust_remote_code)
        modules = _optional(directory / "modules.json")
        return {
            "config": known.get("config", {}) | config,
            "config_origin": origin,
            "is_sentence_encoder": isinstance(modules, list)
            and any(isinstance(one, dict) and "Pooling" in str(one.get("type")) for one in modules),
            "has_chat_template": known.get("has_chat_template") or _has_chat_template(directory),
        }
    if header := next((part.metadata for part in weights if part.metadata), None):
        return {"config": gguf_adapter_config(dict(header)), "config_origin": HEADER}
    config = _optional(directory / ADAPTER.config)
    if not isinstance(config, dict):
        raise Failure(Cause.CONFIG_UNREADABLE, f"{ADAPTER.config} is not a JSON object")
    require_limits(config, ADAPTER.config, Cause.SOURCE_CORRUPT)
    require_lora(config)
    return {"config": config, "config_origin": ADAPTER.config}


def keep_indexed(
    directory: Path, family: str, chosen: Sequence[ModelFile], skipped: Sequence[SkippedFile]
) -> tuple[tuple[ModelFile, ...], tuple[SkippedFile, ...], int | None]:
    """Read the indexes of the weights and keep what they name.

    Returns:
        The chosen files, the skipped ones, and the bytes of all tensors where the indexes announce
        them.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when they name files that are not there, `SOURCE_CORRUPT` when
            one is malformed.
    """
    indexes = {
        name: read_index(name, read_whole(directory / name, INDEX_LIMITS.size))
        for name in index_files(family, chosen)
    }
    return *follow_indexes(chosen, skipped, indexes), announced_size(indexes.values())


def weigh_here(directory: Path, family: str, files: Iterable[ModelFile]) -> list[FileWeights]:
    """Read the weight files of a directory, as `weigh` does."""
    budget = HeaderBudget()
    return [
        weigh(file, family, partial(read_part, directory / file.name), budget)
        for file in files
        if is_weight(file.name)
    ]


def weigh(
    file: ModelFile, family: str, read: Callable[[int, int], bytes], budget: HeaderBudget
) -> FileWeights:
    """Read the summary and tensor headers of one weight file.

    `read` gives its bytes from one offset up to another.

    Raises:
        Failure: `SOURCE_CORRUPT` when its header is malformed, or too large.
    """
    if file.name.endswith(".gguf"):
        header = _read_gguf(file, read, budget)
        return FileWeights(header.summary, {}, metadata=header.metadata, parts=header.parts)
    if not file.name.endswith(".safetensors"):
        return from_size(family, file)
    start = read(0, min(FIRST_READ, file.size))
    end = header_end(start, file)
    budget.spend(file, size=end)
    if end > len(start):
        start += read(len(start), end)
    found = read_header(start[:end], file)
    budget.spend(file, tensors=len(found.tensors))
    return found


def _read_gguf(
    file: ModelFile, read: Callable[[int, int], bytes], budget: HeaderBudget
) -> GgufHeader:
    """Read as much as the header takes: it has the vocabulary, and does not say how long it is."""
    data = bytearray()
    while len(data) < file.size:
        stop = min(max(FIRST_READ, GROWTH * len(data)), file.size)
        budget.spend(file, size=stop - len(data))
        more = read(len(data), stop)
        if not more:
            raise Failure(Cause.SOURCE_INCOMPLETE, f"{file.name} became shorter while it was read")
        data += more
        with suppress(NeedsMore):
            return read_gguf(data, file)
    raise Failure(Cause.SOURCE_INCOMPLETE, f"{file.name} is empty")


def _gguf_fields(weights: Sequence[FileWeights]) -> dict[str, Any]:
    """What the headers of a GGUF model tell; empty for a model of another format."""
    # Of a split model, only the first part tells the sizes; a projector for pictures is no model.
    known = [dict(part.metadata) for part in weights if part.metadata]
    headers = [one for one in known if one.get(ARCHITECTURE) not in (None, PROJECTOR)]
    if not headers:
        return {}
    sizes, parts = Counter[str](), Counter[str]()
    for part in weights:
        sizes.update(part.summary.bytes_by_dtype)
        if part.metadata.get(ARCHITECTURE) != PROJECTOR:
            parts.update(part.parts)
    config = gguf_config(headers[0], sizes, parts)
    require_limits(config, "the GGUF header", Cause.SOURCE_CORRUPT)
    return {
        "config": config,
        "config_origin": HEADER,
        "has_chat_template": has_template(headers[0]),
    }


def _has_chat_template(directory: Path) -> bool:
    if any((directory / name).is_file() for name in CHAT_TEMPLATES):
        return True
    tokenizer = _optional(directory / "tokenizer_config.json", TOKENIZER_LIMITS)
    return isinstance(tokenizer, dict) and bool(tokenizer.get("chat_template"))


def _optional(path: Path, limits: JsonLimits = LIMITS) -> Any:
    """The content of an optional file: one that is missing or cannot be read tells nothing."""
    try:
        return read_json(path, limits)
    except OSError:
        return None
