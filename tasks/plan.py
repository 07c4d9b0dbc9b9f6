"""Planning the launch: what a plan shows is what a deploy executes."""

from __future__ import annotations

from moorage.adapters.engines.argument_check import schema_on_cluster
from moorage.engines.application import ApplicationRequest
from moorage.engines.cluster_plan import plan_on_cluster
from moorage.engines.launch import LaunchPlan
from moorage.engines.plan import plan_launch
from moorage.images.image import Image
from moorage.placement.placed import Placed
from moorage.spec import RuntimeName
from tasks.context import ledger, settings


def planned(placed: Placed, image: Image | None, notes: tuple[str, ...] = ()) -> LaunchPlan:
    """The plan of a release in this ledger, with what the check of its arguments said.

    Raises:
        Failure: `BAD_SPEC` when the engine cannot do what the spec asks for.
    """
    if placed.placement.seats[0].runtime == RuntimeName.RAY:
        plan = _on_cluster(placed)
    else:
        plan = plan_launch(placed, image, ledger().identity, str(settings().caches))
    return plan.model_copy(update={"warnings": (*plan.warnings, *notes)})


def _on_cluster(placed: Placed) -> LaunchPlan:
    seat = placed.placement.seats[0]
    request = ApplicationRequest(
        spec=placed.spec,
        profile=placed.profile,
        model=placed.model,
        seat=seat,
        cluster=placed.snapshot.cluster(seat.host),
        release=placed.release,
        ledger=ledger().identity,
        arguments=schema_on_cluster(placed.spec, settings().root),
    )
    return plan_on_cluster(request, placed.placement.engine)
