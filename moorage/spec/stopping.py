"""How a model that serves is stopped."""

from __future__ import annotations

from pydantic import Field

from moorage.common.input_value import InputValue


class StoppingSpec(InputValue):
    """How a model that serves is stopped; a start that failed is ended at once."""

    drain_seconds: int = Field(
        30,
        ge=0,
        le=3600,
        description="How long requests in flight may take to end before the engine is told to stop."
        " An idle engine is not waited for, nor one that does not tell what it has in flight"
        " (transformers).",
    )
    grace_seconds: int = Field(
        30,
        ge=1,
        le=3600,
        description="How long the engine may take to end after that, then it is killed. vLLM from"
        " 0.18 on still finishes requests in this time (`--shutdown-timeout`), but needs about 10"
        " of these seconds for its own end; it is killed 15 seconds later.",
    )
