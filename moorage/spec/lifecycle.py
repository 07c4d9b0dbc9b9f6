"""Settings for restarting, stopping, replacing and redeploying a serving model."""

from enum import StrEnum

from pydantic import Field

from moorage.common.values import InputValue

MOST_APPROVAL_SECONDS = 604_800
"""Longest time that a deployment may wait for its approval."""


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
    """When a serving model is redeployed automatically. It does not change what runs."""

    on_moved_branch: OnDrift = Field(
        OnDrift.NOTIFY,
        description="What `watch-drift` does when `revision`, or that of an adapter or the draft"
        " model, names another commit than the one that serves. A redeploy for any reason takes"
        " everything that has moved: to pin it, give a commit as `revision`.",
    )
    on_moved_image: OnDrift = Field(
        OnDrift.NOTIFY,
        description="What it does when the tag of the image names another digest.",
    )
    on_changed_file: OnDrift = Field(
        OnDrift.NOTIFY,
        description="What it does when the model's file in the watched folder differs from the"
        " spec that serves.",
    )
    approval: Approval = Field(
        Approval.NONE,
        description="`required` shows the plan and waits until a person approves it, in the"
        " Prefect UI or with `moorage approve`.",
    )
    approval_seconds: int = Field(
        3600,
        ge=1,
        le=MOST_APPROVAL_SECONDS,
        description="How long it waits; then the deployment is refused.",
    )

    @property
    def needs_approval(self) -> bool:
        """Whether a person has to agree to what is deployed."""
        return self.approval == Approval.REQUIRED


class ReplaceStrategy(StrEnum):
    """Ways to replace what serves."""

    AUTO = "auto"
    SURGE = "surge"
    STOP_FIRST = "stop-first"
    CANARY = "canary"


class ReplaceSpec(InputValue):
    """How a new release takes over from the serving one."""

    strategy: ReplaceStrategy = Field(
        ReplaceStrategy.AUTO,
        description="`surge`: the new release starts and is verified while the old one serves,"
        " takes over in one step, and only then the old one stops. `stop-first`: the old one stops"
        " before the new one starts, and the downtime is measured. `canary`: like `surge`, but"
        " only a share of the replicas starts at first and is watched before the rest starts."
        " `auto`: `surge` if both fit, else `stop-first`.",
    )
    canary_share: float = Field(
        0.25,
        gt=0,
        le=1,
        description="Share of the replicas that `canary` starts first, rounded up. While they are"
        " watched, gateways send them the same share of the requests.",
    )
    canary_seconds: int = Field(
        60,
        ge=0,
        le=86_400,
        description="How long these must run and answer before the rest starts.",
    )
    linger_seconds: int = Field(
        2,
        ge=0,
        le=600,
        description="How long a release keeps answering after its successor has taken over or"
        " needs its place, or it is retired, before it drains and stops: for clients that have just"
        " looked up its endpoint.",
    )


class StoppingSpec(InputValue):
    """How a serving model is stopped; a failed start is ended at once."""

    drain_seconds: int = Field(
        30,
        ge=0,
        le=3600,
        description="How long requests in flight may take before the engine gets SIGTERM. An"
        " engine that is idle, or does not report its requests (transformers), gets it at once.",
    )
    grace_seconds: int = Field(
        30,
        ge=1,
        le=3600,
        description="How long the engine may take to exit after that before it is killed. vLLM"
        " from 0.18 on still finishes requests in this time (`--shutdown-timeout`), but needs"
        " about 10 of these seconds for its own shutdown; it is killed 15 seconds later.",
    )


class WhenDead(StrEnum):
    """Whether a release that died is started again."""

    ALWAYS = "always"
    NEVER = "never"


class RestartSpec(InputValue):
    """What reconciling does about a model that has stopped serving."""

    policy: WhenDead = Field(
        WhenDead.ALWAYS,
        description="`always` starts it again in the same place with the same plan; `never` closes"
        " the release and frees its claims once no replica runs.",
    )
    attempts: int = Field(
        3,
        ge=1,
        le=100,
        description="Starts in a row in one place, 10 s apart at first and up to 300 s, before the"
        " model is deployed elsewhere.",
    )
    elsewhere: bool = Field(
        True,
        description="Whether it may be deployed on other accelerators or hosts of the fleet when it"
        " keeps failing, or its host stays unreachable.",
    )
    unreachable_seconds: int = Field(
        600,
        ge=0,
        le=604_800,
        description="How long its host may be unreachable before the model is deployed elsewhere.",
    )
