"""Replay an earlier release for a rollback: its place, its image by digest, its plan."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from prefect import task

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.registry.pinning import identify_image
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Refusal
from moorage.engines.launch import LaunchPlan
from moorage.images.image import Image
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.operations.history.rollback import replanned
from moorage.placement.placement import Analyzed, Placed, Placement
from moorage.placement.replacement import missing_parts, move_reason, pinned_spec, restore_placement
from moorage.releases.release import Release
from tasks.context import PLAIN
from tasks.image import image_hosts, pull_everywhere
from tasks.journal import step, tell
from tasks.place import propose_and_claim, propose_or_show, show_placement, subject_of, summary
from tasks.plan import plan_release

DEPLOY_IT = "Deploy its spec anew: the rules of today choose an image for it."


@task(name="place", task_run_name="place {target.model} where {target.id} ran", **PLAIN)
async def propose_where_it_was(
    target: Release, analyzed: Analyzed, snapshot: FleetSnapshot, running: str
) -> Placement:
    """Where a release would run again. Nothing is claimed."""
    with step("place") as note:
        placement = await _propose_again(target, analyzed, running, snapshot)
        note.say(_summary(placement))
        return placement


@task(
    name="place",
    task_run_name="place {release} where {target.id} ran",
    timeout_seconds=120,
    **PLAIN,
)
async def place_where_it_was(
    target: Release,
    analyzed: Analyzed,
    fleet: Fleet,
    snapshot: FleetSnapshot,
    release: str,
    running: str,
) -> Placed:
    """Claim where a release ran; where that is taken or gone, find another place and say so.

    Returns:
        The model with its place, on the snapshot that the place was chosen on.
    """
    with step("place") as note:
        propose_on = partial(_propose_again, target, analyzed, running)
        placed = await propose_and_claim(propose_on, analyzed, fleet, snapshot, release, running)
        placement = placed.placement
        note.say(_summary(placement))
        if placement.moved:
            tell(f"placed anew: {placement.moved}")
        description = f"Placement of {release}: {_summary(placement)}"
        await show_placement(target.spec, placement, description)
        return placed


@task(name="image", task_run_name="have the image of {target.id}", **PLAIN)
async def pull_same_image(
    target: Release, placement: Placement, snapshot: FleetSnapshot
) -> Image | None:
    """Have the very image of a release on every placed host, by its digest.

    Raises:
        Failure: `IMAGE_MISSING` when neither its registry nor the host has it any more.
    """
    with step("image") as note:
        image, hosts = target.image, image_hosts(placement, snapshot)
        if image is None or not hosts:
            note.say("none: the engine is installed on the host")
            return None
        # By digest alone: the tag may stand for a newer image here, and keeps doing so.
        wanted = image.model_copy(update={"reference": image.pinned})
        try:
            if image.digest:
                await pull_everywhere(wanted, hosts, target.spec)
            else:
                await in_thread(_must_be_there, image, hosts)
        except Failure as failure:
            if failure.cause != Cause.IMAGE_MISSING:
                raise
            raise Failure(failure.cause, failure.detail, suggestion=DEPLOY_IT) from None
        image = await in_thread(identify_image, image, hosts[0])
        note.say(f"{image.pinned} (the image of {target.id})")
        return image


def replan_release(
    target: Release, placed: Placed, image: Image | None, notes: tuple[str, ...] = ()
) -> LaunchPlan:
    """The recorded plan, with what the new release and its place demand.

    Raises:
        Failure: `BAD_SPEC` when the engine cannot do any more what the spec asks for.
    """
    before, recorded = target.placement, target.plan
    fresh = plan_release(placed, image, notes)
    if recorded is None or before is None:
        return fresh
    then = None
    if not missing_parts(before.seats, placed.snapshot):
        then = plan_release(placed.placed(before, placed.snapshot, target.id), image)
    version, now = recorded.engine_version, fresh.engine_version
    note = f"{target.id} ran {recorded.engine} {version}; {now} is installed now"
    return replanned(recorded, then, fresh, note if version and now and version != now else "")


async def _propose_again(
    target: Release, analyzed: Analyzed, running: str, snapshot: FleetSnapshot
) -> Placement:
    before = target.placement
    if before is None:
        raise Failure(Cause.CANNOT_ROLL_BACK, f"{target.id} was never placed")
    if target.spec.placement.cluster:
        subject = await in_thread(subject_of, analyzed)
        return await propose_or_show(subject, snapshot, running)
    try:
        return restore_placement(target.spec, before, target.id, snapshot, running)
    except Refusal as refusal:
        reason = move_reason(before, target.id, refusal)
    spec = pinned_spec(target.spec, before, target.image)
    subject = await in_thread(subject_of, replace(analyzed, spec=spec))
    placement = await propose_or_show(subject, snapshot, running)
    return placement.model_copy(update={"moved": reason})


def _summary(placement: Placement) -> str:
    return summary(placement) + (f"; {placement.moved}" if placement.moved else "")


def _must_be_there(image: Image, hosts: list[HostSnapshot]) -> None:
    """An image that was built on a host has no registry to come from again."""
    for host in hosts:
        if DockerImages(host.address).find(image.pinned) is None:
            detail = f"{image.reference}: {image.pinned} is not on {host.name} any more"
            raise Failure(Cause.IMAGE_MISSING, detail)
