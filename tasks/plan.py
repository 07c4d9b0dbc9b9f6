"""Step plan: check the arguments and plan the launch. A deploy executes the plan as shown."""

from moorage.adapters.engines import schemas as arguments
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.engines.application import ApplicationRequest
from moorage.engines.launch import LaunchPlan
from moorage.engines.plan import plan_launch, plan_on_cluster
from moorage.engines.registry import ENGINES
from moorage.engines.schema.check import ArgumentCheck
from moorage.images.image import Image
from moorage.inventory.fleet import Fleet
from moorage.operations.history.rollback import replanned, with_programs_of
from moorage.placement.placement import Placed
from moorage.placement.replacement import missing_parts
from moorage.releases.release import Release
from moorage.spec import ModelSpec, RuntimeName
from tasks.context import ledger, settings
from tasks.image import wanted_image

NOT_CHECKED = ArgumentCheck()


def plan_release(
    placed: Placed,
    image: Image | None,
    checked: ArgumentCheck = NOT_CHECKED,
    target: Release | None = None,
) -> LaunchPlan:
    """The plan of a release in this ledger, with the warnings of its argument check.

    An earlier release (`target`) runs as recorded, except for the values that its place determines.
    Raises `BAD_SPEC` when the engine does not support a feature that the spec requests.
    """
    seat, engine = placed.placement.seats[0], ENGINES[placed.placement.engine]
    if seat.runtime == RuntimeName.RAY:
        plan = _on_cluster(placed)
    else:
        host, root = placed.snapshot.host(seat.host), settings().root
        known = arguments.schema_for_plan(engine, host, image, root)
        plan = plan_launch(placed, image, ledger().identity, str(settings().caches), known)
    fresh = plan.with_warnings(checked.warnings)
    fresh = fresh.model_copy(update={"checked_against": checked.against})
    if target is None or target.plan is None or target.placement is None:
        return fresh
    before, recorded, then = target.placement, target.plan, None
    if not missing_parts(before.seats, placed.snapshot):
        fleet = with_programs_of(recorded, placed.snapshot)
        then = plan_release(placed.placed(before, fleet, target.id), image)
    version, now = recorded.engine_version, fresh.engine_version
    note = f"{target.id} ran {recorded.engine} {version}; {now} is installed now"
    return replanned(recorded, then, fresh, note if version and now and version != now else "")


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
        arguments=arguments.schema_on_cluster(placed.spec, settings().root),
    )
    return plan_on_cluster(request, placed.placement.engine)


async def check_early(spec: ModelSpec, fleet: Fleet) -> None:
    """Refuse arguments that no possible engine version takes, before the survey."""
    name = spec.placement.cluster
    if not name:
        await in_thread(arguments.check_early, spec, fleet, settings().root)
    elif name not in fleet.clusters:
        raise Failure(
            Cause.BAD_SPEC,
            f"placement.cluster: the fleet has no cluster {name}",
            suggestion=f"It has {', '.join(fleet.clusters) or 'none'}; `clusters` of the fleet file"
            " names them.",
        )


async def check_placed(placed: Placed, target: Release | None = None) -> ArgumentCheck:
    """Check the arguments for the version that will run."""
    spec, placement = placed.spec, placed.placement
    if target:  # the same image already ran with the same arguments
        return NOT_CHECKED
    if spec.placement.cluster:
        return await in_thread(arguments.check_on_cluster, spec, settings().root)
    seat, engine = placement.seats[0], ENGINES[placement.engine]
    host = placed.snapshot.host(seat.host)
    image = wanted_image(placed)[0] if seat.runtime == RuntimeName.DOCKER else None
    return await in_thread(arguments.check_placed, spec, engine, host, image, settings().root)
