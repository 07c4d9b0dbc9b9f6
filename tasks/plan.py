"""Planning the launch: what a plan shows is what a deploy executes."""

from __future__ import annotations

from moorage.adapters.arguments import schema_on_cluster
from moorage.engines.application import ApplicationRequest
from moorage.engines.on_cluster import plan_on_cluster
from moorage.engines.plan import plan_launch
from moorage.images.image import Image
from moorage.launch import LaunchPlan
from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel
from moorage.placement.placement import Placement
from moorage.placement.snapshot import FleetSnapshot
from moorage.spec import ModelSpec, RuntimeName
from tasks.context import ledger, settings


def planned(
    spec: ModelSpec,
    model: ResolvedModel,
    profile: ModelProfile,
    placement: Placement,
    snapshot: FleetSnapshot,
    image: Image | None,
    release: str,
    notes: tuple[str, ...],
) -> LaunchPlan:
    """The plan of a release in this ledger, with what the check of its arguments said.

    Raises:
        Failure: `BAD_SPEC` when the engine cannot do what the spec asks for.
    """
    if placement.seats[0].runtime == RuntimeName.RAY:
        plan = _on_cluster(spec, model, profile, placement, snapshot, release)
        return plan.model_copy(update={"warnings": (*plan.warnings, *notes)})
    plan = plan_launch(
        spec,
        model,
        profile,
        placement,
        snapshot,
        image,
        release,
        ledger().identity,
        str(settings().caches),
    )
    return plan.model_copy(update={"warnings": (*plan.warnings, *notes)})


def _on_cluster(
    spec: ModelSpec,
    model: ResolvedModel,
    profile: ModelProfile,
    placement: Placement,
    snapshot: FleetSnapshot,
    release: str,
) -> LaunchPlan:
    seat = placement.seats[0]
    request = ApplicationRequest(
        spec=spec,
        profile=profile,
        model=model,
        seat=seat,
        cluster=snapshot.cluster(seat.host),
        release=release,
        ledger=ledger().identity,
        arguments=schema_on_cluster(spec, settings().root),
    )
    return plan_on_cluster(request, placement.engine)
