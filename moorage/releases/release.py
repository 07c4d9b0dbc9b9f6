"""A release: one recorded deployment of a model name."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

from moorage.common.failures import Cause, Failure
from moorage.common.values import Value
from moorage.engines.launch import LaunchPlan
from moorage.engines.recovery import Correction
from moorage.engines.workload import Workload, serving
from moorage.images.image import Image
from moorage.inventory.fleet import Host
from moorage.memory.calibration import Measurement
from moorage.models.pin import LocalFiles, Pin
from moorage.models.profile import ModelProfile
from moorage.models.quantizations import FilesChoice, with_files
from moorage.placement.placement import Placement
from moorage.policy.request import Submission
from moorage.readiness.acceptance import Acceptance
from moorage.readiness.engine_facts import EngineFacts
from moorage.readiness.protocol import Readiness
from moorage.readiness.smoke_test import SmokeTestResult
from moorage.releases.release_row import ReleaseRow
from moorage.releases.requester import Requester
from moorage.spec import ModelSpec, OnDrift


class StepRecord(Value):
    """The duration and summary of one step."""

    name: str
    seconds: float
    summary: str = ""


class FailureRecord(Value):
    """The failure of a release, or of a try to wake it."""

    cause: Cause
    detail: str
    suggestion: str
    log_tail: str = ""


class Restart(Value):
    """A restart of dead replicas; `at` is UTC."""

    at: datetime
    replicas: tuple[int, ...]
    reason: str
    flow_run_id: str = ""


class Release(Value):
    """The audit record of `NAME.vN`, written once when the release runs or has failed.

    Later restarts, adapters, a failed wake and declined changes are added to it. Times are UTC.

    Attributes:
        revision: Commit on the hub, or fingerprint of the local directory; empty when the model
            could not be resolved.
        companions: Pinned revisions of its adapters and its draft model.
        local_files: The files that it reads in place, of `file://` sources; empty = none, or an
            older moorage did not record them.
        files: The chosen quantization; None = there was no choice.
        profile: None when the flow failed earlier; so are the fields below.
        hosts: The hosts of its placement, as the fleet described them; empty = a Ray cluster, or an
            older moorage did not record them.
        image: With its digest where the runtime knows it; None for a process.
        facts: What each serving engine reports about itself.
        corrections: Changes of the second attempt, where the engine named a value; one at most.
        measured: Memory that the engines logged, with the prediction.
        replacement: How it replaced another: new while old serves, a share first, or stop-first
            and why.
        downtime_seconds: Time during the replacement in which no release of the name got requests;
            None = no release was replaced, or it was not measured.
        gate: Each replica's answers to the golden prompts; empty = no prompts.
        acceptance: The outcome of its load; None = no load.
        rolled_back_to: Earlier release whose plan it reuses; empty = it has a new plan.
        applied_from: Set of files that it was applied from; empty = it was deployed on its own.
        approval: The note of the person who approved it, with the name where it is known; empty =
            none was needed, or an older moorage did not record it.
        restarts: Oldest first; the newest hundred are kept.
        wake_failure: Why it did not wake the last time; None = it woke, or has never slept.
        declined: Digests of the changes that nobody approved when a redeploy last asked.
        requester: None = an older moorage did not record it.
        finished_at: When it started to run, or failed.
    """

    id: str
    model: str
    spec: ModelSpec
    spec_digest: str
    revision: str
    companions: tuple[Pin, ...] = ()
    local_files: tuple[LocalFiles, ...] = ()
    files: FilesChoice | None = None
    profile: ModelProfile | None = None
    placement: Placement | None = None
    hosts: tuple[Host, ...] = ()
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
    gate: tuple[SmokeTestResult, ...] = ()
    acceptance: Acceptance | None = None
    rolled_back_to: str = ""
    applied_from: str = ""
    submission: Submission = Submission.defaults()
    approval: str = ""
    restarts: tuple[Restart, ...] = ()
    wake_failure: FailureRecord | None = None
    declined: tuple[str, ...] = ()
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
        """The record of a new release: only its spec and the release to replace are known."""
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
    def pattern(self) -> str | None:
        """Pattern of its weight files, from the spec or the choice; None = all files."""
        return with_files(self.spec, self.files).weight_files

    @property
    def ran(self) -> bool:
        """Whether it ever served."""
        return self.failure is None and self.plan is not None and bool(self.readiness)

    @property
    def follows_its_source(self) -> bool:
        """Whether it may take a moved branch unasked: not one that a person went back to."""
        wanted = self.spec.redeploy
        on_purpose = self.rolled_back_to or wanted.needs_approval
        return wanted.on_moved_branch == OnDrift.REDEPLOY and not on_purpose

    @property
    def surprises(self) -> tuple[str, ...]:
        """Deviations from its plan."""
        return surprises_of(self.corrections, self.facts)

    @property
    def serving(self) -> tuple[Workload, ...]:
        """The leader of each replica, which answers requests."""
        return serving(self.workloads)


def surprises_of(
    corrections: Iterable[Correction], facts: Iterable[EngineFacts]
) -> tuple[str, ...]:
    """Deviations of a release from its plan."""
    corrected = (f"second try: {one.summary}" for one in corrections)
    return (*corrected, *(text for one in facts for text in one.surprises))


def plan_of(row: ReleaseRow) -> LaunchPlan:
    """The launch plan of a release; raises `UNKNOWN_RELEASE` when its record has none."""
    if row.plan is None:
        raise Failure(Cause.UNKNOWN_RELEASE, f"{row.id} has no plan to restart from")
    return row.plan
