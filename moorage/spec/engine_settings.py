"""Typed settings of single engines."""

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field, ValidationInfo, field_validator

from moorage.common.values import RECORDED, InputValue
from moorage.spec.patterns import check_secret_options, check_words

KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A key of a model's configuration. Any other key could inject code or options into readers."""


class VllmSettings(InputValue):
    """Settings of vLLM alone."""

    hf_overrides: dict[str, Any] = Field(
        {},
        max_length=1000,
        description='Fields of the model\'s configuration to override, such as `{"num_labels": 2}`'
        " (`--hf-overrides`).",
    )
    gpu_memory_utilization: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Share of each accelerator's memory (`--gpu-memory-utilization`), above 0 and"
        " at most 1. Empty = the smallest that serves the spec.",
    )

    @field_validator("gpu_memory_utilization")
    @classmethod
    def _check_share(cls, share: float | None, info: ValidationInfo) -> float | None:
        if share == 0 and info.context != RECORDED:
            raise ValueError("above 0 and at most 1")
        return share

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
        overrides, share = self.hf_overrides, self.gpu_memory_utilization
        words = () if share is None else ("--gpu-memory-utilization", f"{share:g}")
        if not overrides:
            return words
        compact = json.dumps(overrides, separators=(",", ":"), sort_keys=True)
        return (*words, "--hf-overrides", compact)


class LlamaCppSettings(InputValue):
    """Settings of llama.cpp alone."""

    reasoning_budget: int | None = Field(
        None,
        ge=-1,
        description="Most tokens of a model's reasoning: -1 = no limit, 0 = no reasoning.",
    )

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments that they stand for."""
        budget = self.reasoning_budget
        return () if budget is None else ("--reasoning-budget", str(budget))


class TritonInstance(StrEnum):
    """Who chooses the accelerators of Triton's instance of the model."""

    MODEL = "KIND_MODEL"
    GPU = "KIND_GPU"


class TritonSettings(InputValue):
    """Settings of Triton alone."""

    instance: TritonInstance = Field(
        TritonInstance.MODEL,
        description="Kind of the model's instance: `KIND_MODEL` leaves the accelerators to vLLM,"
        " as a model on several requires; `KIND_GPU` pins one.",
    )
    metrics: bool = Field(
        True, description="Report vLLM's metrics on Triton's port for metrics (24.08 or newer)."
    )
    health_check: bool = Field(
        False,
        description="Let the backend check its engine before each request: if it is dead, the"
        " model is unloaded, and requests are refused as unavailable. moorage requests a token"
        " from outside either way. Not together with `grpc`.",
    )
    grpc: bool = Field(
        False,
        description="Open the port for gRPC, on which answers stream. Whoever reaches it can also"
        " administer the server, so restrict access to it.",
    )
    openai: bool = Field(
        False,
        description="Serve OpenAI's protocol under `/v1` in place of Triton's own, so that gateways"
        " route the model; NVIDIA's images have the program for it. Not together with `grpc` and"
        " `health_check`.",
    )
    server_args: tuple[str, ...] = Field(
        (),
        max_length=1000,
        description="Arguments of `tritonserver` itself, such as `--log-verbose=1`, or with"
        " `openai` of its frontend; each entry is one argument.",
    )

    @field_validator("server_args")
    @classmethod
    def _check_words(cls, words: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if info.context == RECORDED:
            return words
        check_words(words)
        check_secret_options(words)
        for word in words:
            name = word.partition("=")[0]
            owned = (one for one in OWNED_BY_MOORAGE if one.startswith(name))
            # The servers' own parsers complete an unambiguous beginning of a name.
            if name.startswith("--") and (found := min(owned, default="")):
                raise ValueError(f"{name}: moorage decides about {found}")
        return words


OWNED_BY_MOORAGE = frozenset(
    f"--{name}"
    for name in (
        *("model-repository", "model-store", "model-control-mode", "load-model"),
        *("http-address", "http-port", "grpc-address", "grpc-port"),
        *("metrics-address", "metrics-port", "exit-timeout-secs"),
        *("http-restricted-api", "allow-grpc", "allow-sagemaker", "allow-vertex-ai"),
        *("backend-directory", "cache-directory", "repoagent-directory"),
        *("host", "openai-port", "tokenizer", "backend", "lora-separator"),
        *("enable-kserve-frontends", "kserve-http-port", "kserve-grpc-port"),
    )
)
"""Arguments of Triton that would change its addresses or files, or weaken its access control.

Directories of backends, caches and agents hold libraries that the server runs.
"""


def _keys(content: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every key, at any depth."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield (own := (*path, str(key)))
            yield from _keys(value, own)
    elif isinstance(content, list):
        for value in content:
            yield from _keys(value, path)
