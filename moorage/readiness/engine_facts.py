"""What an engine says about itself once it serves, held against what was planned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from moorage.common.units import human_bytes
from moorage.common.values import Value
from moorage.readiness.measured import Measured, Size
from moorage.readiness.protocol import MOST_TOKENS, shorten
from moorage.spec.arguments import parse_words

T = TypeVar("T")

VERSION_PATH, MODELS_PATH = "/version", "/v1/models"
MOST_NAMES = 1000
"""Names that a record holds of an engine: those of the model, and of each adapter."""

LENGTH = "--max-model-len"
LEFT_TO_THE_ENGINE = (None, "auto", "-1")


class EngineFacts(Value):
    """One replica, as its engine describes it; None or empty = it does not say.

    Attributes:
        workload: Name of the container or process.
        version: Version of the engine.
        planned_version: Version that was planned; empty = unknown.
        names: Names that it serves, LoRA adapters included.
        context: Longest request in tokens.
        planned_context: The same as it was planned; None = the engine was to decide.
        kv_cache_bytes: Size of its KV cache.
        kv_tokens: Tokens that the cache holds.
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
        """What is not as it was planned."""
        found = []
        if self.context and self.planned_context and self.context != self.planned_context:
            found.append(
                f"{self.workload} serves {self.context} tokens, {self.planned_context} were planned"
            )
        if self.version and self.planned_version and not self._is_as_planned:
            found.append(f"{self.workload} is version {self.version}, not {self.planned_version}")
        return tuple(found)

    @property
    def _is_as_planned(self) -> bool:
        """Whether it is the planned version; `+cpu` and the like only tell how it was built."""
        return self.planned_version in (self.version, self.version.partition("+")[0])

    @property
    def summary(self) -> str:
        """The facts in a line."""
        told = (
            (f"version {self.version}", self.version),
            (f"{self.context} tokens", self.context),
            (f"{human_bytes(self.kv_cache_bytes or 0)} of KV cache", self.kv_cache_bytes),
            (f"room for {self.kv_tokens} tokens", self.kv_tokens),
        )
        return ", ".join(text for text, known in told if known)


def engine_facts(
    workload: str,
    arguments: Sequence[str],
    planned_version: str,
    version: Any,
    models: Any,
    measured: Measured | None,
) -> EngineFacts:
    """The facts of one replica.

    Args:
        workload: Name of the container or process.
        arguments: Its command line.
        planned_version: Version that was planned; empty = unknown.
        version: Its answer on `/version`; anything else than an answer counts as none.
        models: Its answer on `/v1/models`, likewise.
        measured: What its log says about memory.
    """
    listed = [item for item in _field(models, "data", list) or () if isinstance(item, dict)]
    lengths = (_length(item) for item in listed)
    return EngineFacts(
        workload=workload,
        version=shorten(_field(version, "version", str) or ""),
        planned_version=planned_version,
        names=tuple(shorten(item["id"]) for item in listed[:MOST_NAMES] if "id" in item),
        context=next((length for length in lengths if length), None),
        planned_context=_planned_context(arguments),
        kv_cache_bytes=measured.kv_cache_bytes if measured else None,
        kv_tokens=measured.kv_tokens if measured else None,
    )


def _planned_context(arguments: Sequence[str]) -> int | None:
    stated = parse_words(arguments)
    if stated.value(LENGTH) in LEFT_TO_THE_ENGINE:
        return None
    return stated.whole_number(LENGTH)


def _length(listed: dict[str, Any]) -> int | None:
    length = _field(listed, "max_model_len", int)
    return length if length is not None and 0 <= length <= MOST_TOKENS else None


def _field(answer: Any, name: str, kind: type[T]) -> T | None:
    value = answer.get(name) if isinstance(answer, dict) else None
    return value if isinstance(value, kind) else None
