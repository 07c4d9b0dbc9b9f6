"""Reads a model's metadata from its files, in a directory or at a remote source."""

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
from moorage.models.config import MODELOPT, Config, require_limits, with_modelopt
from moorage.models.files import ADAPTER, Layout, is_weight
from moorage.models.gguf import NeedsMore, read_gguf
from moorage.models.gguf_config import (
    ARCHITECTURE,
    PROJECTOR,
    gguf_adapter_config,
    gguf_config,
    has_template,
)
from moorage.models.rope import first_int
from moorage.models.source import ModelFile, SkippedFile, WeightSummary
from moorage.models.weight_index import (
    INDEX_LIMITS,
    announced_size,
    follow_indexes,
    index_files,
    read_index,
)
from moorage.models.weights import LONGEST_HEADERS, FileWeights, header_end, read_header

FIRST_READ = 65_536
"""Bytes of the first read of a weight file; most headers are shorter."""

GROWTH = 4
"""Factor by which the read part of a GGUF file grows until it contains the whole header."""

MOST_TENSORS = 300_000
"""Limit of a model's tensors; the largest known number is 280,000."""

TOKENIZER_LIMITS = JsonLimits(size=24 * MIB, entries=1_000_000, constants=True)
"""Limits of a tokenizer's configuration, which lists all added tokens: 65,000 for speech models."""

HEADER = "GGUF header"
SENTENCE_CONFIGS = tuple(
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Settings of sentence-transformers (`get_sentence_transformer_tokenizer_config` of vLLM 0.32)."""

CHAT_TEMPLATES = ("chat_template.jinja", "chat_template.json")


@dataclass
class HeaderBudget:
    """The remaining limits for the headers of one model, over all of its weight files."""

    size: int = LONGEST_HEADERS
    tensors: int = MOST_TENSORS

    def spend(self, file: ModelFile, *, size: int = 0, tensors: int = 0) -> None:
        """Count a header; raises `SOURCE_CORRUPT` when the headers exceed the limits of a model."""
        self.size -= size
        self.tensors -= tensors
        if self.size < 0 or self.tensors < 0:
            most = f"{human_bytes(LONGEST_HEADERS)} or {MOST_TENSORS:,} tensors"
            detail = f"{file.name}: with it, the headers of the weights exceed {most}"
            raise Failure(Cause.SOURCE_CORRUPT, detail)


def describe(
    directory: Path, layout: Layout, weights: Sequence[FileWeights], *, trust_remote_code: bool
) -> dict[str, Any]:
    """Read the metadata files of a model or adapter; returns fields of `ResolvedModel`.

    Raises:
        Failure: `CONFIG_UNREADABLE` when the configuration cannot be read, `SOURCE_CORRUPT` when
            it or another file is malformed, `SOURCE_INCOMPLETE` when an adapter is not a LoRA.
    """
    if layout is not ADAPTER:
        # llama.cpp reads no config.json.
        if known := _gguf_fields(weights):
            return known
        config, origin = read_config(directory, trust_remote_code=trust_remote_code)
        config = with_modelopt(config, _optional(directory / MODELOPT))
        modules = _optional(directory / "modules.json")
        return {
            "config": config,
            "config_origin": origin,
            "is_sentence_encoder": isinstance(modules, list)
            and any(isinstance(one, dict) and "Pooling" in str(one.get("type")) for one in modules),
            "longest_input": _longest_input(directory, config),
            "has_chat_template": _has_chat_template(directory),
            "has_own_tokenizer": _has_own_tokenizer(directory),
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
    """Read the indexes of the weights and keep the files that they name.

    Returns:
        The chosen files, the skipped files, and the bytes of all tensors if the indexes announce
        them.

    Raises:
        Failure: `SOURCE_INCOMPLETE` when an index names a missing file, `SOURCE_CORRUPT` when an
            index is malformed.
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

    `read` returns the bytes between two offsets. Raises `SOURCE_CORRUPT` for a header that is
    malformed or too large.
    """
    if file.name.endswith(".gguf"):
        return _read_gguf(file, read, budget)
    if not file.name.endswith(".safetensors"):
        return FileWeights(WeightSummary(family=family, bytes=file.size))
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
) -> FileWeights:
    """Read growing parts of the file until they contain the header: its size is not stated."""
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
    """Fields of `ResolvedModel` from GGUF headers; empty for a model of another format."""
    # In a split model only the first part has the sizes. A projector for images is not a model.
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
    has_file = any((directory / name).is_file() for name in CHAT_TEMPLATES)
    return has_file or bool(_tokenizer(directory).get("chat_template"))


def _has_own_tokenizer(directory: Path) -> bool:
    """Whether transformers needs the model's own code for its tokenizer.

    With another class in `tokenizer_class` it uses that one instead (`resolve_trust_remote_code`).
    """
    settings = _tokenizer(directory)
    mapped = settings.get("auto_map")
    own = mapped.get("AutoTokenizer") if isinstance(mapped, dict) else None
    names = own if isinstance(own, list) else [own]
    classes = [name.rpartition(".")[2] for name in names if isinstance(name, str)]
    return bool(classes) and settings.get("tokenizer_class") in (None, *classes)


def _longest_input(directory: Path, config: Config) -> int | None:
    """Tokens of the longest input to pool; None = no settings limit it.

    Source: `config/model.py:_get_and_verify_max_len` of vLLM 0.32, which asks the tokenizer's
    settings only where the position of a token is an index.
    """
    found = (_optional(directory / name) for name in SENTENCE_CONFIGS)
    sentences = next((one for one in found if isinstance(one, dict) and one), {})
    if length := first_int(sentences, "max_seq_length"):
        return length
    if config.get("position_embedding_type") != "absolute":
        return None
    return first_int(_tokenizer(directory), "model_max_length")


def _tokenizer(directory: Path) -> dict[str, Any]:
    content = _optional(directory / "tokenizer_config.json", TOKENIZER_LIMITS)
    return content if isinstance(content, dict) else {}


def _optional(path: Path, limits: JsonLimits = LIMITS) -> Any:
    """The content of an optional file; None if it is missing or cannot be read."""
    with suppress(OSError):
        return read_json(path, limits)
    return None
