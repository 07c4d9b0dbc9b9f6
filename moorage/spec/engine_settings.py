"""Settings of single engines, typed: each becomes an argument of its engine."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field, field_validator

from moorage.common.values import InputValue

KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A key of a model's configuration. Others could smuggle something into what reads them."""


class VllmSettings(InputValue):
    """Settings of vLLM alone."""

    hf_overrides: dict[str, Any] = Field(
        {},
        max_length=1000,
        description="Fields of the model's configuration that get another value, such as"
        ' `{"num_labels": 2}` (`--hf-overrides`).',
    )
    gpu_memory_utilization: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Share of each accelerator's memory (`--gpu-memory-utilization`). Empty = the"
        " smallest that serves the spec.",
    )

    @field_validator("hf_overrides")
    @classmethod
    def _check_keys(cls, overrides: dict[str, Any]) -> dict[str, Any]:
        for path in _keys(overrides):
            if not KEY.fullmatch(path[-1]):
                raise ValueError(f"{'.'.join(path)[:100]!r} is no key of a configuration")
        return overrides

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments that they stand for."""
        compact = json.dumps(self.hf_overrides, separators=(",", ":"), sort_keys=True)
        share = self.gpu_memory_utilization
        return (
            *(("--gpu-memory-utilization", f"{share:g}") if share is not None else ()),
            *(("--hf-overrides", compact) if self.hf_overrides else ()),
        )


class LlamaCppSettings(InputValue):
    """Settings of llama.cpp alone."""

    reasoning_budget: int | None = Field(
        None,
        ge=-1,
        description="Tokens that a model may think for: -1 = as many as it likes, 0 = none.",
    )

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments that they stand for."""
        budget = self.reasoning_budget
        return () if budget is None else ("--reasoning-budget", str(budget))


def _keys(content: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys at every depth, with those above them."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield (*path, str(key))
            yield from _keys(value, (*path, str(key)))
    elif isinstance(content, list):
        for value in content:
            yield from _keys(value, path)
