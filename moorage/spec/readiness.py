"""When a model counts as deployed."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, model_validator

from moorage.common.input_value import InputValue
from moorage.spec.patterns import UrlPath
from moorage.spec.smoke_test import CompareSpec, PromptSpec

LONGEST_SECONDS = 31_536_000
"""A year."""


class Deadlines(InputValue):
    """How long each phase may take, in seconds."""

    download_seconds: int = Field(
        3600,
        ge=1,
        le=LONGEST_SECONDS,
        description="From the first byte of the weights to the last, verified one.",
    )
    image_seconds: int = Field(1800, ge=1, le=LONGEST_SECONDS, description="Pulling the image.")
    load_seconds: int = Field(
        900,
        ge=1,
        le=LONGEST_SECONDS,
        description="From the start of the engine until it calls itself healthy.",
    )
    warm_up_seconds: int = Field(
        120, ge=1, le=LONGEST_SECONDS, description="From healthy until the first answer is there."
    )

    @property
    def on_cluster_seconds(self) -> int:
        """The nodes of a Ray cluster download the model while they start it."""
        return self.download_seconds + self.load_seconds


class ProbeSpec(InputValue):
    """How readiness is proven."""

    multiline: ClassVar[frozenset[str]] = frozenset({"prompt"})

    path: UrlPath = Field(
        "/health",
        description="Path that answers 200 once the engine calls itself healthy.",
    )
    request: bool = Field(
        True,
        description="Also send one real request (a token, an embedding, a score) and check the"
        " answer. Health alone does not prove that an engine serves.",
    )
    prompt: str = Field("Say hello.", min_length=1, description="Text of that request.")


class ReadinessSpec(InputValue):
    """When the model counts as deployed."""

    deadlines: Deadlines = Field(
        Deadlines(), description="Deadline of each phase; a phase that misses it ends the deploy."
    )
    probe: ProbeSpec = Field(ProbeSpec(), description="What is asked to prove it.")
    second_try: bool = Field(
        True,
        description="Where the engine refuses to start and names what it could do (the context"
        " that fits, the model's longest, the memory that is free), start it once more with that"
        " number. It counts for stated values too, and the release says what was changed.",
    )
    prompts: tuple[PromptSpec, ...] = Field(
        (),
        max_length=32,
        description="Golden prompts that every replica has to answer well before the release takes"
        " over. If one does not, the deploy fails (`gate-failed`) and the old one serves on.",
    )
    compare: CompareSpec = Field(
        CompareSpec(), description="How it has to compare with the release before."
    )

    @model_validator(mode="after")
    def _compares_what_it_asks(self) -> ReadinessSpec:
        if self.compare.min_tokens_per_second_ratio and not self.prompts:
            raise ValueError("compare: it is measured with `prompts`; write at least one")
        return self
