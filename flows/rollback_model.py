"""Roll back a model: an earlier release runs again, exactly as it was recorded."""

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.deploy_model import roll_out
from flows.dry_run import plan_rollback, require_allowed_again, rollback_source
from flows.flow_context import NO_RESULT, ending, flow_context, keep_result
from moorage.adapters.prefect.task_runner import task_runner
from moorage.releases.release import Release
from moorage.releases.requester import Claim
from moorage.reports.form_parameters import THIS_MACHINE, FleetParameter
from moorage.spec import Name
from tasks.addresses import follow
from tasks.compare import sole_flow
from tasks.policy import settled_fleet
from tasks.release import announcement


@flow(
    name="rollback-model", flow_run_name="roll back {name}", **NO_RESULT, task_runner=task_runner()
)
@keep_result
async def rollback_model(
    name: Name,
    to: str = "",
    fleet: FleetParameter = THIS_MACHINE,
    dry_run: bool = False,
    requested_by: Claim = "",
) -> State[Release]:
    """Deploy an earlier release of a model again: same revision, same image, same plan.

    It becomes a new release, which is started, is verified and takes over as in any deploy. It runs
    where the earlier one ran, or elsewhere if that place is taken or gone.

    Args:
        name: Name of the model, as in its spec.
        to: The target release, or the beginning of its id; empty = the previous one that ran.
        fleet: The hosts on which it may run. Default: the worker's fleet, else this machine.
        dry_run: Show exactly what would run; nothing is claimed or started.
        requested_by: The requester, for the record; not verified.
    """
    async with flow_context(name, requested_by) as context:
        if dry_run:
            return ending(await plan_rollback(context, name, to, fleet))
        fleet = await settled_fleet(fleet)
        async with sole_flow(name, context.flow_run_id, replaces=True):
            source, old, healthy = await rollback_source(name, to, fleet)
            fleet = await require_allowed_again(source, fleet)
            await follow(fleet)
            before = source.facts["rolled_back_to"]
            runs = (old.release.id, old.release.rolled_back_to) if old and old.release else ()
            if old and healthy and before in runs:
                message = f"unchanged: {old.id} already serves what {before} ran"
                return Completed(name="Unchanged", message=message, data=old.release)
            release = await roll_out(context, source, fleet, old)
    return Completed(message=f"{announcement(release)}, as {before} did", data=release)
