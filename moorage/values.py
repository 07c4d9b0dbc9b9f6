"""The base of every value that travels from step to step."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A frozen value. Unknown keys are refused, so that a typo never passes silently."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Origin(StrEnum):
    """Where a derived value comes from; every flag, variable and choice carries one."""

    USER = "user"
    """The spec says so."""

    DEFAULT = "default"
    """Nobody said anything; this is the documented default."""

    DERIVED = "derived"
    """Worked out from the model, the host or the placement."""
