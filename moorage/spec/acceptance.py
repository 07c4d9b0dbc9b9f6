"""Settings of the acceptance load, which a release has to pass before it serves."""

from typing import Self

from pydantic import Field, model_validator

from moorage.common.units import Duration
from moorage.common.values import InputValue

TURNS = 4
"""Turns of a round: in each turn a release and its predecessor get a part of the load, one right
after the other, so that disturbances affect both."""


class AcceptanceSpec(InputValue):
    """A short load on every replica. Its figures are recorded, and may have limits."""

    ttft_p95: Duration | None = Field(
        None,
        description="Longest time to first token (TTFT) for 95 % of the requests, such as `500ms`."
        " Empty = no limit.",
    )
    tpot_p95: Duration | None = Field(
        None,
        description="Longest time per output token after the first (TPOT), likewise, such as"
        " `50ms`.",
    )
    max_slowdown: float | None = Field(
        None,
        ge=1,
        le=100,
        description="Highest median TTFT and TPOT as a multiple of those of the release before:"
        " 1.25 = a quarter more. Both releases get the same load in turns, so that other work on"
        " the machines affects both; a release is slower if it is slower in three of four turns."
        " Not compared if the release before has stopped. Empty = the figures of both are"
        " recorded.",
    )
    warn_only: bool = Field(
        False,
        description="Let a release that misses a limit serve, with a warning in its record.",
    )
    requests: int = Field(
        32,
        ge=4,
        le=10_000,
        description="Requests to each replica, at least four times `concurrency`.",
    )
    concurrency: int = Field(
        4, ge=1, le=256, description="Requests that each replica gets at the same time."
    )
    prompt_words: int = Field(
        128,
        ge=1,
        le=100_000,
        description="Words of a prompt. The first word differs in each, so that no cache helps.",
    )
    max_tokens: int = Field(64, ge=2, le=8192, description="Longest answer in tokens.")
    deadline: Duration = Field(
        300.0,
        description="How long the load of a release may take in one round; later answers count as"
        " failures. A round that misses a limit is repeated, up to three rounds in all.",
    )

    @model_validator(mode="after")
    def _check_requests(self) -> Self:
        if self.requests < TURNS * self.concurrency:
            raise ValueError(
                f"requests: {self.requests} are too few for a concurrency of {self.concurrency};"
                f" {TURNS * self.concurrency} are needed"
            )
        return self
