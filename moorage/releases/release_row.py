"""A release as a row of the ledger.

A list of all models needs no records, so this module does not import the parts of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from moorage.engines.workload import Workload, serving
from moorage.inventory.claims import Resource
from moorage.releases.states import ReleaseState

if TYPE_CHECKING:
    from moorage.engines.launch import LaunchPlan
    from moorage.inventory.claims import Claim
    from moorage.models.pin import Pin
    from moorage.placement.placement import Placement
    from moorage.releases.release import Release
    from moorage.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """A release as a row of the ledger, with its running or planned workloads.

    Attributes:
        release: The record; None until it is written.
        foreign_record: The record as plain data, when another version of moorage wrote it in a
            form that this version cannot read.
        retired_at: When the model was retired, if that was after this release had failed.
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
    retired_at: datetime | None = None

    @property
    def plan(self) -> LaunchPlan | None:
        """The launch plan of its record."""
        return self.release.plan if self.release else None

    @property
    def placement(self) -> Placement | None:
        """The placement of its record."""
        return self.release.placement if self.release else None

    @property
    def as_it_runs(self) -> Release | None:
        """The record with the current workloads, where the release has any."""
        if self.release is None or not self.workloads:
            return self.release
        return self.release.model_copy(update={"workloads": self.workloads})

    @property
    def serving(self) -> tuple[Workload, ...]:
        """The leader of each replica, which answers requests."""
        return serving(self.workloads)

    def is_of(self, spec: ModelSpec, revision: str, companions: tuple[Pin, ...]) -> bool:
        """Whether its record is of this spec at these revisions."""
        same = (self.spec_digest, self.revision) == (spec.digest, revision)
        return same and self.release is not None and self.release.companions == companions


def release_id(model: str, number: int) -> str:
    """The id of the n-th release of a model."""
    return f"{model}.v{number}"


SUPERSEDED = "superseded by"
"""Beginning of the cause of a release that stops for its successor (`tasks/replace.py`)."""

STOPPED_FIRST = "stopped first"
"""Follows the successor in that cause, where the release stops before its successor serves."""

ASLEEP = "asleep"
"""Beginning of the cause of a release that stops to sleep (`tasks/sleep.py`)."""

ENDING = "its engines were told to end"
"""Added to that cause while engines stop: an engine that still runs may be about to exit."""


def successor_of(row: ReleaseRow) -> str:
    """The successor for which a release stops; empty = it does not stop for a successor."""
    if row.state != ReleaseState.STOPPING or not row.cause.startswith(SUPERSEDED):
        return ""
    return row.cause.removeprefix(SUPERSEDED).split()[0].strip(",;")


def claims_of(row: ReleaseRow | None) -> tuple[str, tuple[Claim, ...]]:
    """Id and claims of a release that may have to make room; both empty if it has no place to give.

    A release that sleeps has only its ports; while its engines still run, it makes no room.
    """
    if row is None or row.placement is None:
        return "", ()
    if row.state != ReleaseState.ASLEEP:
        return row.id, row.placement.claims
    ports = [claim for claim in row.placement.claims if claim.resource == Resource.PORT]
    return ("", ()) if row.workloads else (row.id, tuple(ports))
