"""A release as the ledger lists it; a list of all models needs no records.

So nothing here imports what a record consists of.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from moorage.engines.workload import Workload, serving
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
    """A release as the ledger lists it, with what it runs or was about to start.

    Attributes:
        release: The record, once it is written.
        foreign_record: The record as plain data, when another version of moorage wrote it in a
            shape that this one cannot read.
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
    def plan(self) -> LaunchPlan | None:
        """The launch plan of its record."""
        return self.release.plan if self.release else None

    @property
    def placement(self) -> Placement | None:
        """The placement of its record."""
        return self.release.placement if self.release else None

    @property
    def as_it_runs(self) -> Release | None:
        """The record, with the workloads as they are now while it serves."""
        if self.release is None or not self.workloads:
            return self.release
        return self.release.model_copy(update={"workloads": self.workloads})

    @property
    def serving(self) -> tuple[Workload, ...]:
        """The leader of each replica, which answers requests."""
        return serving(self.workloads)

    def is_of(self, spec: ModelSpec, revision: str, companions: tuple[Pin, ...]) -> bool:
        """Whether its record says that it serves this spec at these revisions."""
        same = (self.spec_digest, self.revision) == (spec.digest, revision)
        return same and self.release is not None and self.release.companions == companions


def release_id(model: str, number: int) -> str:
    """The id of the n-th release of a model."""
    return f"{model}.v{number}"


SUPERSEDED = "superseded by"
"""Begins the cause of a release that stops for its successor (`tasks/replace.py`)."""

STOPPED_FIRST = "stopped first"
"""Goes on in that cause, after the successor, where the release stops before that one serves."""

ASLEEP = "asleep"
"""Begins the cause of a release that stops to sleep (`tasks/sleep.py`)."""

ENDING = "its engines were told to end"
"""Goes on in that cause while engines are stopped: one that still runs may be about to end."""


def successor_of(row: ReleaseRow) -> str:
    """The release for which a release stops; empty = it does not stop for one."""
    if row.state != ReleaseState.STOPPING or not row.cause.startswith(SUPERSEDED):
        return ""
    return row.cause.removeprefix(SUPERSEDED).split()[0].strip(",;")


def replaceable(old: ReleaseRow | None) -> str:
    """The release that may be stopped first: only one that could be started again."""
    return old.id if old and old.plan else ""


def claims_of(row: ReleaseRow | None) -> tuple[str, tuple[Claim, ...]]:
    """A release that may have had to make room, with its claims; both empty for none."""
    return (row.id, row.placement.claims) if row and row.placement else ("", ())
