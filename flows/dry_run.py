"""What planning shares, however the plan came about: the look at the fleet, and the record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from flows.flow_context import Story
from moorage.engines.launch import LaunchPlan
from moorage.images.image import Image
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.placed import Placed
from moorage.releases.release import Release, ReleaseRow
from moorage.spec import ModelSpec
from tasks.cleanup import abandoned
from tasks.context import in_thread
from tasks.release import publish_plan
from tasks.survey import survey


async def survey_cleaned_up(fleet: Fleet, spec: ModelSpec) -> FleetSnapshot:
    """The fleet as a deploy would find it: it cleans up first what dead flows have left."""
    snapshot = await survey(fleet, spec.placement.cluster)
    for row in await in_thread(abandoned, spec.name):
        snapshot = snapshot.without(row.id)
    return snapshot


async def would_run(
    story: Story,
    placed: Placed,
    image: Image | None,
    plan: LaunchPlan,
    old: ReleaseRow | None,
    **facts: Any,
) -> Release:
    """The record of a release that was only planned, shown as an artifact.

    Args:
        story: The flow run's; the record begins when it did.
        placed: The model and its place.
        image: Its image.
        plan: What would run.
        old: The release that it would replace.
        facts: Further fields of the record.
    """
    release = Release.begun(
        placed.release, placed.spec, story.flow_run_id, story.begun, old, **facts
    )
    found = {"profile": placed.profile, "placement": placed.placement, "image": image, "plan": plan}
    pins = {"revision": placed.model.revision, "companions": placed.model.pins}
    ended = {"steps": tuple(story.journal.steps), "finished_at": datetime.now(UTC)}
    release = release.model_copy(update={**found, **pins, **ended})
    await publish_plan(release, f"What deploying {release.model} would run")
    return release
