"""A release as ledger and hosts show it, and how long it waits before its next start."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from moorage.engines.launch import Workload
from moorage.operations.reconcile.actions import Action, ActionKind
from moorage.operations.reconcile.cluster_state import (
    ClusterState,
    LedgerRelease,
    Observation,
    ObservedWorkload,
    RepairRecord,
)

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 300.0
HEALTHY_SECONDS = 300.0
"""How long a release must have answered before its failures are forgotten."""


def delay_seconds(attempts: int) -> float:
    """How long to wait after so many starts in a row: 10 s, 20 s, 40 s, ... 300 s.

    Args:
        attempts: How often it was started again; 0 = never, so nothing is waited for.
    """
    if attempts < 1:
        return 0.0
    # The exponent is bounded: a release may fail for months.
    longest: float = FIRST_SECONDS * 2.0 ** min(attempts - 1, 16)
    return min(longest, LONGEST_SECONDS)


def not_before(now: datetime, attempts: int) -> datetime:
    """The earliest moment of the next start."""
    return now + timedelta(seconds=delay_seconds(attempts))


MOST_MISSED = 2
"""Questions in a row that an engine may leave without an answer before it counts as dead."""


@dataclass(frozen=True)
class ReleaseStatus:
    """A release, the world that it is in, and what follows from both.

    Args:
        cluster: Everything that is known.
        own: The release.
    """

    cluster: ClusterState
    own: LedgerRelease

    @cached_property
    def record(self) -> RepairRecord:
        """What is kept about its repairs."""
        return self.cluster.record(self.own.id)

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """All that it should run, as the ledger has it where it does."""
        known = {one.name: one for one in self.own.workloads}
        more = tuple(one for one in self.own.planned if one.name not in known)
        return (*self.own.workloads, *more)

    @cached_property
    def unseen(self) -> tuple[Observation, ...]:
        """Places of it that cannot be looked at."""
        observations = (self.cluster.observation(one) for one in self.workloads)
        return tuple({one.place: one for one in observations if one and one.unseen_since}.values())

    @cached_property
    def unseen_seconds(self) -> float:
        """How long the first of them has been out of sight."""
        since = [look.unseen_since for look in self.unseen if look.unseen_since]
        return (self.cluster.now - min(since)).total_seconds() if since else 0.0

    @cached_property
    def unlisted(self) -> tuple[Workload, ...]:
        """What runs as planned, but is not in the ledger, or under another identity."""
        listed = {one.name: one.identity for one in self.own.workloads}
        return tuple(
            one.model_copy(update={"identity": found.identity})
            for one in self.workloads
            if (found := self.found(one))
            and found.running
            and listed.get(one.name) != found.identity
        )

    @cached_property
    def dead(self) -> dict[str, str]:
        """What of it does not run though its place can be looked at, and what became of it."""
        return {
            one.name: found.state if (found := self.found(one)) else "it is gone"
            for one in self.workloads
            if self._is_seen(one) and not ((found := self.found(one)) and found.running)
        }

    @property
    def silent(self) -> str:
        """Why it counts as dead though it runs; empty = it does not."""
        if self.record.missed >= MOST_MISSED:
            return f"it did not answer {self.record.missed} times in a row"
        begun = self.record.started_at
        if begun and self.cluster.now - begun > timedelta(seconds=self.own.start_seconds):
            return f"it has not answered within {self.own.start_seconds:g} s of its start"
        return ""

    def found(self, workload: Workload) -> ObservedWorkload | None:
        """A workload as its place shows it."""
        look = self.cluster.observation(workload)
        seen = look.found if look else ()
        own = (one for one in seen if one.name == workload.name and one.release == self.own.id)
        return next(own, None)

    def action(self, kind: ActionKind, reason: str, **more: object) -> Action:
        """Something to do about it."""
        about = {"model": self.own.model, "release": self.own.id, "state": self.own.state}
        return Action.model_validate({"kind": kind, "reason": reason, **about, **more})

    def _is_seen(self, workload: Workload) -> bool:
        look = self.cluster.observation(workload)
        return look is not None and look.unseen_since is None
