"""In which way a release takes the place of another, and what is told of it."""

from __future__ import annotations

from datetime import UTC, datetime

from moorage.common.units import human_seconds
from moorage.engines.launch import LABEL_REPLICA
from moorage.engines.start_order import split_off
from moorage.releases.release import Release, ReleaseRow
from moorage.releases.timeline import outage
from moorage.spec import ReplaceStrategy
from tasks.context import ledger


def announcement(release: Release) -> str:
    """What a release serves, where, and what was changed or lost to make it start."""
    endpoints = ", ".join(f"{workload.endpoint}/v1" for workload in release.serving)
    corrected = "".join(f"; second try: {one.summary}" for one in release.corrections)
    lost = release.downtime_seconds
    gap = f"; nobody served for {human_seconds(lost)}" if lost else ""
    return f"{release.id} serves {release.model} at {endpoints}{corrected}{gap}"


def how(draft: Release, old: ReleaseRow | None) -> str:
    """In which way a release took over from another; empty = there was none."""
    if not old or not draft.placement or not draft.plan:
        return ""
    if draft.placement.stop_first:
        return draft.placement.stop_first
    beside = "started beside the old release, which stopped after"
    if not is_canary(draft, old.release):
        return beside
    replace = draft.spec.replace
    first, _ = split_off(draft.plan, replace.canary_share)
    count = len({spec.labels[LABEL_REPLICA] for spec in first.containers})
    watched = f"{count} of {draft.spec.replicas} replicas, watched for {replace.canary_seconds} s"
    return f"canary: {watched}; then the rest; {beside}"


def is_canary(draft: Release, before: Release | None) -> bool:
    """Whether a share of a release starts first and is watched.

    Only beside another one, which spares it; and what is gone back to has shown before that it
    serves, and is often wanted in a hurry.
    """
    wanted = draft.spec.replace.strategy == ReplaceStrategy.CANARY
    return wanted and before is not None and not draft.rolled_back_to


def downtime_of(old: ReleaseRow | None, draft: Release) -> float | None:
    """How long a release that stopped for one that failed has served nobody; None = no release.

    It was started again by now, or never stopped.
    """
    if old is None:
        return None
    return outage(ledger().releases.transitions(old.id), draft.created_at, datetime.now(UTC))
