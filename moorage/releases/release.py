"""A release: one recorded deployment of a model name."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from moorage.common.failures import Cause
from moorage.common.values import Value
from moorage.engines.launch import LaunchPlan, Workload, serving
from moorage.engines.recovery import Correction
from moorage.images.image import Image
from moorage.memory.calibration import Measurement
from moorage.models.assets import Pin
from moorage.models.profile import ModelProfile
from moorage.placement.placement import Placement
from moorage.policy.request import Submission
from moorage.readiness.engine_facts import EngineFacts
from moorage.readiness.protocol import Readiness
from moorage.readiness.smoke_test import Gate
from moorage.releases.requester import Requester
from moorage.releases.states import ReleaseState
from moorage.spec import ModelSpec

__all__ = [
    "FailureRecord",
    "Release",
    "ReleaseRow",
    "ReleaseState",
    "Restart",
    "StepRecord",
    "release_id",
]


class StepRecord(Value):
    """How one step went. `seconds` is its duration."""

    name: str
    seconds: float
    summary: str = ""


class FailureRecord(Value):
    """Why a release failed."""

    cause: Cause
    detail: str
    suggestion: str
    log_tail: str = ""


class Restart(Value):
    """That what died of a release was started again.

    Attributes:
        at: When, UTC.
        replicas: Which ones.
        reason: What was seen of them.
        flow_run_id: Prefect flow run that did it.
    """

    at: datetime
    replicas: tuple[int, ...]
    reason: str
    flow_run_id: str = ""


class Release(Value):
    """The audit record, written once when the release runs or has failed.

    What comes later is added: adapters that are loaded, and starts after a death.

    Attributes:
        id: `NAME.vN`.
        model: Name of the model.
        spec: The spec as it was deployed.
        spec_digest: Its fingerprint.
        revision: Commit on the hub, or fingerprint of the local directory; empty when the model
            could not be resolved.
        companions: What its adapters and its draft model were pinned to.
        profile: What the model is; None when the flow did not get that far, as all below.
        placement: Where it runs, and why nowhere else.
        image: The image, with digest where the runtime could tell; None for a process.
        plan: What was executed, each flag with its origin.
        workloads: What was started.
        readiness: The proof for each replica.
        facts: What each engine says about itself now that it serves.
        corrections: What the second try changed, where the engine named a number; one at most.
        measured: What the engines logged about memory, with what was predicted.
        steps: Each step with its time.
        replaced: Release that this one took over from; empty = none.
        replacement: How: new while old serves, a share first, or stop-first and why.
        downtime_seconds: How long nobody was sent to any release of the name while this one took
            the place of another, or failed to; None = there was none to replace, or nobody
            measured it.
        gate: How each replica answered the golden prompts; empty = there are none.
        rolled_back_to: Earlier release that it runs again; empty = it was planned anew.
        applied_from: Set of files that it was applied from; empty = it was deployed by itself.
        submission: Channel through which its spec came in, and the owner whose quota it counts for.
        restarts: Each start again of what died, oldest first; the newest hundred are kept.
        failure: Why it failed; None when it runs.
        flow_run_id: Prefect flow run that made it.
        requester: Who requested it; None = an older moorage did not record it.
        created_at: When it was begun, UTC.
        finished_at: When it was running, or had failed, UTC.
    """

    id: str
    model: str
    spec: ModelSpec
    spec_digest: str
    revision: str
    companions: tuple[Pin, ...] = ()
    profile: ModelProfile | None = None
    placement: Placement | None = None
    image: Image | None = None
    plan: LaunchPlan | None = None
    workloads: tuple[Workload, ...] = ()
    readiness: tuple[Readiness, ...] = ()
    facts: tuple[EngineFacts, ...] = ()
    corrections: tuple[Correction, ...] = ()
    measured: tuple[Measurement, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    replaced: str = ""
    replacement: str = ""
    downtime_seconds: float | None = None
    gate: tuple[Gate, ...] = ()
    rolled_back_to: str = ""
    applied_from: str = ""
    submission: Submission = Submission()
    restarts: tuple[Restart, ...] = ()
    failure: FailureRecord | None = None
    flow_run_id: str = ""
    requester: Requester | None = None
    created_at: datetime
    finished_at: datetime

    @classmethod
    def begun(
        cls,
        identity: str,
        spec: ModelSpec,
        flow_run_id: str,
        at: datetime,
        old: ReleaseRow | None,
        **facts: Any,
    ) -> Self:
        """The record of a release of which nothing but its spec is known.

        Args:
            identity: Its id.
            spec: What the user wrote.
            flow_run_id: Prefect flow run that makes it.
            at: When it was begun, UTC.
            old: The release that it will replace.
            facts: Fields that say where it comes from.
        """
        return cls(
            id=identity,
            model=spec.name,
            spec=spec,
            spec_digest=spec.digest,
            revision="",
            replaced=old.id if old else "",
            flow_run_id=flow_run_id,
            created_at=at,
            finished_at=at,
            **facts,
        )

    @property
    def ran(self) -> bool:
        """Whether it ever served."""
        return self.failure is None and self.plan is not None and bool(self.readiness)

    @property
    def serving(self) -> tuple[Workload, ...]:
        """What answers requests: one of each replica."""
        return serving(self.workloads)


class ReleaseRow(Value):
    """A release as the ledger lists it.

    Attributes:
        release: The record, once it is written.
        foreign_record: The record as plain data, when another version of moorage wrote it in a
            shape that this one cannot read.
        workloads: What the release runs, or was about to start.
    """

    id: str
    model: str
    number: int
    state: ReleaseState
    spec_digest: str
    revision: str
    flow_run_id: str
    created_at: datetime
    updated_at: datetime
    cause: str = ""
    release: Release | None = None
    foreign_record: dict[str, Any] | None = None
    workloads: tuple[Workload, ...] = ()

    @property
    def as_it_runs(self) -> Release | None:
        """The record, with the workloads as they are now while it serves."""
        if self.release is None or not self.workloads:
            return self.release
        return self.release.model_copy(update={"workloads": self.workloads})

    @property
    def serving(self) -> tuple[Workload, ...]:
        """What answers requests: one of each replica."""
        return serving(self.workloads)

    def is_of(self, spec: ModelSpec, revision: str, companions: tuple[Pin, ...]) -> bool:
        """Whether it serves this very spec at these revisions, as far as its record tells."""
        same = (self.spec_digest, self.revision) == (spec.digest, revision)
        return same and self.release is not None and self.release.companions == companions


def release_id(model: str, number: int) -> str:
    """The id of the n-th release of a model."""
    return f"{model}.v{number}"
