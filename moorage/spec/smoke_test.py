"""What a new release has to answer before it takes over."""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from moorage.common.input_value import InputValue


class MessageSpec(InputValue):
    """One message of a conversation."""

    multiline: ClassVar[frozenset[str]] = frozenset({"content"})

    role: Literal["system", "user", "assistant"] = Field(
        "user", description="Who says it: `system`, `user` or `assistant`."
    )
    content: str = Field(min_length=1, max_length=100_000, description="What is said.")


class PromptSpec(InputValue):
    """A golden prompt: what a good release answers to it is known."""

    multiline: ClassVar[frozenset[str]] = frozenset({"expect", "prompt"})

    prompt: str = Field(
        "",
        max_length=100_000,
        description="Text that is asked, as one message of a user where the model has a chat"
        " template. Either this or `messages`.",
    )
    messages: tuple[MessageSpec, ...] = Field(
        (), max_length=64, description="A whole conversation that is to be continued."
    )
    expect: str = Field(
        "",
        max_length=1000,
        description="Regular expression (of Python) that has to be found in the answer. Empty ="
        " any answer of at least one token.",
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
    def _is_a_pattern(cls, expect: str) -> str:
        try:
            re.compile(expect)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"a regular expression, and this is none: {error}") from None
        return expect

    @model_validator(mode="after")
    def _asks_one_thing(self) -> PromptSpec:
        if bool(self.prompt) == bool(self.messages):
            raise ValueError("either `prompt` or `messages`")
        return self


class CompareSpec(InputValue):
    """How a new release has to compare with the one that it replaces."""

    min_tokens_per_second_ratio: float | None = Field(
        None,
        gt=0,
        le=100,
        description="Least tokens per second over all `prompts`, of each replica, as a share of"
        " what the release before reached with the same prompts: 0.8 allows a fifth less. Empty ="
        " speeds are recorded, not compared.",
    )
