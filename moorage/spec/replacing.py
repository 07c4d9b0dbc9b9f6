"""How a release takes over from the one that serves."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from moorage.common.input_value import InputValue


class ReplaceStrategy(StrEnum):
    """Ways to replace what serves."""

    AUTO = "auto"
    SURGE = "surge"
    STOP_FIRST = "stop-first"
    CANARY = "canary"


class ReplaceSpec(InputValue):
    """How a new release takes over from the one that serves."""

    strategy: ReplaceStrategy = Field(
        ReplaceStrategy.AUTO,
        description="`surge`: the new release starts beside the old one, is proven, takes over in"
        " one step, and only then the old one stops. `stop-first`: the old one stops before the new"
        " one starts; how long nobody served is measured. `canary`: like `surge`, but only a share"
        " of the replicas starts at first and is watched before the rest starts. `auto`: `surge`"
        " where both fit, else `stop-first`.",
    )
    canary_share: float = Field(
        0.25,
        gt=0,
        le=1,
        description="Share of the replicas that `canary` starts first, rounded up: at least one.",
    )
    canary_seconds: int = Field(
        60,
        ge=0,
        le=86_400,
        description="How long these have to live and answer before the rest starts.",
    )
    linger_seconds: int = Field(
        2,
        ge=0,
        le=600,
        description="How long a release goes on answering once nobody is sent to it any more (its"
        " successor has taken over or needs its place, or it is retired), before it drains and"
        " stops: for clients that have just looked its endpoint up.",
    )
