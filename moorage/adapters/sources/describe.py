"""What the files of a model tell about it, wherever they lie."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from moorage.adapters.pretrained import read_config
from moorage.failures import Cause, Failure
from moorage.models.adapter_config import require_lora
from moorage.models.files import (
    Split,
    announced_size,
    follow_indexes,
    index_files,
    is_weight,
)
from moorage.models.gguf import NeedsMore, read_gguf
from moorage.models.layout import ADAPTER, MODEL, Layout
from moorage.models.source import ModelFile, SkippedFile, WeightSummary
from moorage.models.weights import FileWeights, from_size, header_end, read_header
from moorage.values import Value

FIRST_READ = 65_536
"""Bytes of a weight file to read at once; most headers are shorter."""

FIRST_GGUF_READ = 1 << 20
"""The same of a GGUF file, whose header has the vocabulary."""

CHAT_TEMPLATES = ("chat_template.jinja", "chat_template.json")


class Description(Value):
    """What the metadata of a model tells; the fields are those of `ResolvedModel`."""

    config: dict[str, Any]
    config_origin: str
    is_sentence_encoder: bool
    has_chat_template: bool


def describe(directory: Path, layout: Layout = MODEL, *, trust_remote_code: bool) -> Description:
    """Read the metadata files of a model, or of an adapter.

    Raises:
        Failure: `CONFIG_UNREADABLE` when the configuration cannot be read, `SOURCE_INCOMPLETE`
            when an adapter is no LoRA.
    """
    if layout is ADAPTER:
        return _describe_adapter(directory)
    config, origin = read_config(directory, trust_remote_code=trust_remote_code)
    return Description(
        config=config,
        config_origin=origin,
        is_sentence_encoder=_has_pooling(directory),
        has_chat_template=_has_chat_template(directory),
    )


def _describe_adapter(directory: Path) -> Description:
    config = _json(directory / ADAPTER.config)
    if not isinstance(config, dict):
        raise Failure(Cause.CONFIG_UNREADABLE, f"{ADAPTER.config} is not a JSON object")
    require_lora(config)
    return Description(
        config=config,
        config_origin=ADAPTER.config,
        is_sentence_encoder=False,
        has_chat_template=False,
    )


def keep_indexed(
    directory: Path, family: str, chosen: Sequence[ModelFile], skipped: Sequence[SkippedFile]
) -> Split:
    """Read the indexes of the weights and keep what they name.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when they name files that are not there.
    """
    return follow_indexes(chosen, skipped, _indexes(directory, family, chosen))


def announced(directory: Path, family: str, chosen: Sequence[ModelFile]) -> int | None:
    """Bytes of all tensors, where the indexes announce them."""
    return announced_size(_indexes(directory, family, chosen))


def weigh_here(directory: Path, family: str, files: Iterable[ModelFile]) -> list[FileWeights]:
    """Read the weight files of a directory, as `weigh` does."""
    return [
        weigh(file, family, partial(_read, directory / file.name))
        for file in files
        if is_weight(file.name)
    ]


def weigh(file: ModelFile, family: str, read: Callable[[int, int], bytes]) -> FileWeights:
    """Read what one weight file tells of itself.

    Args:
        file: The weight file.
        family: Its format.
        read: Reads the bytes of the file from one offset up to another.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when its header is malformed.
    """
    if file.name.endswith(".gguf"):
        return FileWeights(_read_gguf(file, read), {})
    if not file.name.endswith(".safetensors"):
        return from_size(family, file)
    start = read(0, min(FIRST_READ, file.size))
    end = header_end(start, file)
    if end > len(start):
        start += read(len(start), end)
    return read_header(start[:end], file)


def _read_gguf(file: ModelFile, read: Callable[[int, int], bytes]) -> WeightSummary:
    """Read as much as the header takes: it has the vocabulary, and does not say how long it is."""
    data = b""
    while len(data) < file.size:
        data += read(len(data), min(max(FIRST_GGUF_READ, 2 * len(data)), file.size))
        with suppress(NeedsMore):
            return read_gguf(data, file)
    raise Failure(Cause.SOURCE_INCOMPLETE, f"{file.name} is empty")


def _indexes(directory: Path, family: str, chosen: Sequence[ModelFile]) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in index_files(family, chosen)}


def _read(path: Path, start: int, stop: int) -> bytes:
    with path.open("rb") as content:
        content.seek(start)
        return content.read(stop - start)


def _has_pooling(directory: Path) -> bool:
    modules = _json(directory / "modules.json")
    return isinstance(modules, list) and any(
        isinstance(module, dict) and "Pooling" in str(module.get("type")) for module in modules
    )


def _has_chat_template(directory: Path) -> bool:
    if any((directory / name).is_file() for name in CHAT_TEMPLATES):
        return True
    tokenizer = _json(directory / "tokenizer_config.json")
    return isinstance(tokenizer, dict) and bool(tokenizer.get("chat_template"))


def _json(path: Path) -> Any:
    """The content of an optional file: one that is missing or damaged tells nothing."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
