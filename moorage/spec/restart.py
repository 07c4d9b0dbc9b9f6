"""What becomes of a model that serves when its engine dies."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from moorage.common.input_value import InputValue


class WhenDead(StrEnum):
    """Whether a release that died is started again."""

    ALWAYS = "always"
    NEVER = "never"


class RestartSpec(InputValue):
    """What reconciling does about a model that served and does not any more."""

    policy: WhenDead = Field(
        WhenDead.ALWAYS,
        description="`always` starts it again where it was, exactly as it was planned; `never`"
        " closes the release and frees what it holds.",
    )
    attempts: int = Field(
        3,
        ge=1,
        le=100,
        description="Starts in a row in one place, 10 s apart at first and up to 300 s, before the"
        " model is deployed anew elsewhere.",
    )
    elsewhere: bool = Field(
        True,
        description="Whether it may be deployed anew on other accelerators or hosts of the fleet"
        " when it keeps failing, or its host stays out of sight.",
    )
    unreachable_seconds: int = Field(
        600,
        ge=0,
        le=604_800,
        description="How long its host may be out of sight before the model is deployed anew"
        " elsewhere.",
    )
