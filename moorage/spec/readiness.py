"""Settings of a model's readiness: probes, golden prompts and deadlines."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from moorage.common.values import InputValue
from moorage.spec.acceptance import AcceptanceSpec
from moorage.spec.patterns import UrlPath


class MessageSpec(InputValue):
    """One message of a conversation."""

    multiline: ClassVar[frozenset[str]] = frozenset({"content"})

    role: Literal["system", "user", "assistant"] = Field(
        "user", description="Who speaks: `system`, `user` or `assistant`."
    )
    content: str = Field(min_length=1, max_length=100_000, description="Its text.")


class PromptSpec(InputValue):
    """A golden prompt: a request whose good answer is known."""

    multiline: ClassVar[frozenset[str]] = frozenset({"expect", "prompt"})

    prompt: str = Field(
        "",
        max_length=100_000,
        description="Text of the request, as one message of a user where the model has a chat"
        " template. Either this or `messages`.",
    )
    messages: tuple[MessageSpec, ...] = Field(
        (), max_length=64, description="A whole conversation for the model to continue."
    )
    expect: str = Field(
        "",
        max_length=1000,
        description="Regular expression (Python's) that the answer must contain. Empty = any"
        " answer of at least one token.",
    )
    max_seconds: float | None = Field(
        None,
        gt=0,
        le=31_536_000,
        description="How long the whole answer may take. Empty = `deadlines.warm_up_seconds`.",
    )
    max_tokens: int = Field(64, ge=1, le=8192, description="Longest answer in tokens.")

    @field_validator("expect")
    @classmethod
    def _check_pattern(cls, expect: str) -> str:
        try:
            re.compile(expect)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"a regular expression, and this is none: {error}") from None
        return expect

    @model_validator(mode="after")
    def _check_request(self) -> PromptSpec:
        if bool(self.prompt) == bool(self.messages):
            raise ValueError("either `prompt` or `messages`")
        return self


class CompareSpec(InputValue):
    """How a new release must compare with the one that it replaces."""

    min_tokens_per_second_ratio: float | None = Field(
        None,
        gt=0,
        le=100,
        description="Least tokens per second of each replica over all `prompts`, as a share of the"
        " speed of the release before with the same prompts: 0.8 allows a fifth less. Empty ="
        " speeds are recorded, not compared.",
    )


Seconds = Annotated[int, Field(ge=1, le=31_536_000)]
"""Seconds, at most a year."""


class Deadlines(InputValue):
    """How long each phase may take, in seconds."""

    download_seconds: Seconds = Field(
        3600, description="From the first byte of the weights to the last, verified one."
    )
    image_seconds: Seconds = Field(1800, description="Pulling the image.")
    load_seconds: Seconds = Field(
        900, description="From the start of the engine until it reports healthy."
    )
    warm_up_seconds: Seconds = Field(120, description="From healthy until the first answer.")

    @property
    def on_cluster_seconds(self) -> int:
        """Deadline on a Ray cluster, whose nodes download the model during the start."""
        return self.download_seconds + self.load_seconds


class ProbeSpec(InputValue):
    """How readiness is proven."""

    multiline: ClassVar[frozenset[str]] = frozenset({"prompt"})

    path: UrlPath = Field(
        "/health", description="Path that answers 200 once the engine is healthy."
    )
    request: bool = Field(
        True,
        description="Also send one real request (for a token, an embedding, a score, a transcript,"
        " a picture) and check the answer. Health alone does not prove that an engine serves.",
    )
    prompt: str = Field(
        "Say hello.", min_length=1, description="Text of that request, if it has one."
    )


class ReadinessSpec(InputValue):
    """When the model counts as deployed."""

    deadlines: Deadlines = Field(
        Deadlines.defaults(),
        description="Deadline of each phase; a phase that misses it ends the deploy.",
    )
    probe: ProbeSpec = Field(ProbeSpec.defaults(), description="The requests that prove readiness.")
    second_try: bool = Field(
        True,
        description="If the engine refuses to start and its error names a value that works (the"
        " context that fits, the model's longest, the free memory), start it once more with that"
        " value. It also replaces stated values, and the release records the change.",
    )
    prompts: tuple[PromptSpec, ...] = Field(
        (),
        max_length=32,
        description="Golden prompts that every replica must answer well before the release takes"
        " over. If one does not, the deploy fails (`gate-failed`) and the old release keeps"
        " serving.",
    )
    compare: CompareSpec = Field(
        CompareSpec.defaults(), description="How it must compare with the release before."
    )
    acceptance: AcceptanceSpec | None = Field(
        None,
        description="A short load that every replica must carry after that; if it misses a limit,"
        " the deploy fails (`acceptance-failed`) and the old release keeps serving. Empty = no"
        " load. A rollback gets no load.",
    )

    @model_validator(mode="after")
    def _check_compare(self) -> ReadinessSpec:
        if self.compare.min_tokens_per_second_ratio and not self.prompts:
            raise ValueError("compare: it is measured with `prompts`; write at least one")
        return self
