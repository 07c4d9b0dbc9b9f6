"""What is done when what a model is made of has moved, and who has to agree."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from moorage.common.input_value import InputValue


class OnDrift(StrEnum):
    """What is done about something that has moved."""

    NEVER = "never"
    NOTIFY = "notify"
    REDEPLOY = "redeploy"


class Approval(StrEnum):
    """Whether a person has to agree before the model is deployed or redeployed."""

    NONE = "none"
    REQUIRED = "required"


class RedeploySpec(InputValue):
    """When a model that serves is deployed again by itself. It does not change what runs."""

    on_moved_branch: OnDrift = Field(
        OnDrift.NOTIFY,
        description="What `watch-drift` does when `revision`, or that of an adapter or the draft"
        " model, stands for another commit than what serves. A redeploy for any reason takes"
        " everything that has moved: give a commit as `revision` to keep it.",
    )
    on_moved_image: OnDrift = Field(
        OnDrift.NOTIFY,
        description="What it does when the tag of the image stands for another digest.",
    )
    on_changed_file: OnDrift = Field(
        OnDrift.NOTIFY,
        description="What it does when the model's file in the folder that is watched says"
        " something else than what serves.",
    )
    approval: Approval = Field(
        Approval.NONE,
        description="`required` shows what would be deployed and waits until a person agrees, in"
        " the Prefect UI or with `moorage approve`.",
    )
    approval_seconds: int = Field(
        3600,
        ge=1,
        le=604_800,
        description="How long it waits; then the deployment is refused.",
    )
