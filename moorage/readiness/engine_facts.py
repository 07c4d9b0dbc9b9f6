"""Facts that a serving engine reports, compared with the plan."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field

from moorage.common.units import GIB, human_bytes
from moorage.common.values import Value
from moorage.readiness.answers import MOST_TOKENS, shorten
from moorage.readiness.diagnosis import COLOUR
from moorage.spec.arguments import parse_words

Size = Annotated[int, Field(ge=0)] | None


class Measured(Value):
    """Memory that a start logged; bytes of the rank with the most, None = not in the log.

    Attributes:
        weights_bytes: Memory that loading the model allocated, including buffers.
        consumed_bytes: Permanent memory without the cache: weights, buffers, non-torch memory.
        non_torch_bytes: The part of it outside torch; only older versions log it.
        activation_bytes: Peak of a forward pass above the permanent memory.
        graph_bytes: Memory that capturing the CUDA graphs took.
        graph_reserve_bytes: Memory reserved for the graphs beforehand, from the engine's budget.
        kv_cache_bytes: The KV cache of the rank with the least, which limits all ranks.
        concurrency: Number of full-length requests that fit the cache at once.
        process_bytes: RAM of the worker on CPU before its cache.
    """

    weights_bytes: Size = None
    consumed_bytes: Size = None
    non_torch_bytes: Size = None
    activation_bytes: Size = None
    graph_bytes: Size = None
    graph_reserve_bytes: Size = None
    kv_cache_bytes: Size = None
    kv_tokens: Size = None
    request_tokens: Size = None
    concurrency: float | None = None
    process_bytes: Size = None


def read_measured(log: str) -> Measured | None:
    """Memory facts from a log of vLLM; None when the log has none.

    The last line of each process counts, since a trial capture precedes the real one.
    """
    by_process: dict[str, dict[str, float]] = defaultdict(dict)
    for raw in log.splitlines():
        line = COLOUR.sub("", raw)
        process = _PROCESS.search(line)
        by_process[process.group(1) if process else ""] |= _facts(line)
    return combine_measured(_of_process(facts) for facts in by_process.values())


def combine_measured(all_measured: Iterable[Measured]) -> Measured | None:
    """Combine several ranks: the maximum of needs, the minimum of supplies."""
    merged: dict[str, float] = {}
    for measured in all_measured:
        for name, value in measured.model_dump(exclude_none=True).items():
            choose = min if name in _SUPPLY else max
            merged[name] = choose(merged.get(name, value), value)
    return Measured.model_validate(merged) if merged else None


_SUPPLY = frozenset({"kv_cache_bytes", "kv_tokens", "concurrency"})

_PROCESS = re.compile(r"\(([^()]*\bpid=\d+)[^()]*\)")
"""The process of a line: `(EngineCore pid=24)`, `(Worker_TP1 pid=40)`."""

_SIZE = r"(-?\d+(?:\.\d+)?) ?"
_COUNT = r"(\d[\d,]*)"
_RESERVED = "reserved"
_SETS_ASIDE = "sets aside"

_LINES: tuple[tuple[str, str], ...] = (
    ("weights_bytes", rf"Model loading took {_SIZE}GiB"),
    ("weights_bytes", rf"Loading model weights took {_SIZE}GB"),
    ("weights_bytes", rf"model weights take {_SIZE}GiB"),
    ("weights_bytes", rf"{_SIZE}GiB for weights?,"),
    ("consumed_bytes", rf"{_SIZE}GiB for consumed memory"),
    ("non_torch_bytes", rf"{_SIZE}GiB for non-torch memory"),
    ("non_torch_bytes", rf"non_torch_memory takes {_SIZE}GiB"),
    ("activation_bytes", rf"{_SIZE}GiB for peak activation"),
    ("activation_bytes", rf"PyTorch activation peak memory takes {_SIZE}GiB"),
    ("graph_bytes", rf"Graph capturing finished in .*took {_SIZE}GiB"),
    ("graph_bytes", rf"{_SIZE}GiB for CUDAGraph memory"),
    (_RESERVED, rf"Estimated CUDA graph memory: {_SIZE}GiB total"),
    (_RESERVED, rf"CUDA graph pool memory: .*\(actual\), {_SIZE}GiB \(estimated\)"),
    (_SETS_ASIDE, r"CUDA graph memory profiling is enabled()"),
    ("kv_cache_bytes", rf"Available KV cache memory: {_SIZE}GiB"),
    ("kv_cache_bytes", rf"Current kv cache memory in use is {_SIZE}GiB"),
    ("kv_cache_bytes", rf"reserved {_SIZE}GiB memory for KV Cache as specified"),
    ("kv_cache_bytes", rf"memory reserved for KV Cache is {_SIZE}GiB"),
    ("kv_cache_bytes", rf"(?:Explicitly|Auto) set \({_SIZE}/.*GiB for KV cache on node"),
    ("process_bytes", rf"{_SIZE}GiB memory was consumed by non-kv usages"),
    ("kv_tokens", rf"KV cache size: {_COUNT} tokens"),
    ("request_tokens", rf"Maximum concurrency for {_COUNT} tokens per request"),
    ("concurrency", r"Maximum concurrency for .* tokens per request: (\d+(?:\.\d+)?)x"),
)
"""Facts, and the patterns of the lines that contain them; a line may contain several."""

_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _LINES)


def _facts(line: str) -> dict[str, float]:
    """Facts in a line, sizes in bytes. Negative sizes are dropped: other processes freed memory."""
    found = {}
    for name, pattern in _PATTERNS:
        if match := pattern.search(line):
            number = float(match.group(1).replace(",", "") or 1)
            if number >= 0:
                is_size = name.endswith("_bytes") or name == _RESERVED
                found[name] = number * GIB if is_size else number
    return found


def _of_process(facts: Mapping[str, float]) -> Measured:
    """The facts of one process as fields.

    Where vLLM reserves memory for graphs, it includes that in the peak that it calls activation.
    Source: `gpu_worker.py:determine_available_memory`, on by default since 0.21.
    """
    values = {name: value for name, value in facts.items() if name in Measured.model_fields}
    if _SETS_ASIDE in facts and _RESERVED in facts:
        values["graph_reserve_bytes"] = facts[_RESERVED]
        if "activation_bytes" in facts:
            values["activation_bytes"] = max(0, facts["activation_bytes"] - facts[_RESERVED])
    whole = {
        name: value if name == "concurrency" else round(value) for name, value in values.items()
    }
    return Measured.model_validate(whole)


T = TypeVar("T")

VERSION_PATH, MODELS_PATH = "/version", "/v1/models"
MOST_NAMES = 1000
"""Most names of an engine in a record: of the model, and of each adapter."""

LENGTH = "--max-model-len"
LEFT_TO_THE_ENGINE = (None, "auto", "-1")


class EngineFacts(Value):
    """One replica, as its engine reports; None or empty = not reported.

    Attributes:
        planned_version: Version in the plan; empty = unknown.
        names: Served names, including LoRA adapters.
        planned_context: Context in the plan; None = the engine decides.
    """

    workload: str
    version: str = ""
    planned_version: str = ""
    names: tuple[str, ...] = ()
    context: Size = None
    planned_context: Size = None
    kv_cache_bytes: Size = None
    kv_tokens: Size = None

    @property
    def surprises(self) -> tuple[str, ...]:
        """Deviations from the plan."""
        found = []
        if self.context and self.planned_context and self.context != self.planned_context:
            found.append(
                f"{self.workload} serves {self.context} tokens, {self.planned_context} were planned"
            )
        # Suffixes such as `+cpu` only name the build.
        versions = (self.version, self.version.partition("+")[0])
        if self.version and self.planned_version and self.planned_version not in versions:
            found.append(f"{self.workload} is version {self.version}, not {self.planned_version}")
        return tuple(found)

    @property
    def summary(self) -> str:
        """The facts in one line."""
        parts = (
            (f"version {self.version}", self.version),
            (f"{self.context} tokens", self.context),
            (f"{human_bytes(self.kv_cache_bytes or 0)} of KV cache", self.kv_cache_bytes),
            (f"room for {self.kv_tokens} tokens", self.kv_tokens),
        )
        return ", ".join(text for text, known in parts if known)


def engine_facts(
    workload: str,
    arguments: Sequence[str],
    planned_version: str,
    version: Any,
    models: Any,
    measured: Measured | None,
) -> EngineFacts:
    """The facts of one replica.

    `version` and `models` are its answers to `/version` and `/v1/models`; values of other types are
    ignored. An empty planned version is unknown.
    """
    stated = parse_words(arguments)
    limited = stated.value(LENGTH) not in LEFT_TO_THE_ENGINE
    listed = [item for item in _field(models, "data", list) or () if isinstance(item, dict)]
    lengths = (_length(item) for item in listed)
    return EngineFacts(
        workload=workload,
        version=shorten(_field(version, "version", str) or ""),
        planned_version=planned_version,
        names=tuple(shorten(item["id"]) for item in listed[:MOST_NAMES] if "id" in item),
        context=next((length for length in lengths if length), None),
        planned_context=stated.whole_number(LENGTH) if limited else None,
        kv_cache_bytes=measured.kv_cache_bytes if measured else None,
        kv_tokens=measured.kv_tokens if measured else None,
    )


def _length(listed: dict[str, Any]) -> int | None:
    length = _field(listed, "max_model_len", int)
    return length if length is not None and 0 <= length <= MOST_TOKENS else None


def _field(answer: Any, name: str, kind: type[T]) -> T | None:
    value = answer.get(name) if isinstance(answer, dict) else None
    return value if isinstance(value, kind) else None
