"""Roll back a model: an earlier release runs again, exactly as it was recorded."""

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.deploy_model import roll_out
from flows.flow_context import NO_RESULT, flow_context, keep_result
from flows.plan_model import ReleaseSource
from flows.plan_model import dry_run as show_dry_run
from moorage.adapters.prefect.task_runner import task_runner
from moorage.adapters.system.threads import in_thread
from moorage.inventory.fleet import Fleet
from moorage.operations.history.rollback import rollback_target
from moorage.releases.release import Release, ReleaseRow
from moorage.releases.requester import Claim
from moorage.spec import Name
from tasks.compare import serving, sole_flow
from tasks.context import ledger
from tasks.policy import recorded_scope, require_allowed, settled_fleet
from tasks.release import announcement


@flow(
    name="rollback-model", flow_run_name="roll back {name}", **NO_RESULT, task_runner=task_runner()
)
@keep_result
async def rollback_model(
    name: Name,
    to: str = "",
    fleet: Fleet = Fleet(),  # noqa: B008
    dry_run: bool = False,
    requested_by: Claim = "",
) -> State[Release]:
    """Serve an earlier release of a model again: same revision, same image, same plan.

    It becomes a new release, which is started, verified and takes over as in any deploy. It runs
    where the earlier one ran; elsewhere only if that place is taken or gone.

    Args:
        name: Name of the model, as in its spec.
        to: The release to go back to, or how its id begins; empty = the last one before what serves
            now that ran.
        fleet: The hosts it may run on; without it, those of the worker, else this machine.
        dry_run: Say exactly what would run; nothing is claimed or started.
        requested_by: Who wants it, for the record; nobody checks it.
    """
    async with flow_context(name, requested_by) as context:
        fleet = await settled_fleet(fleet)
        if dry_run:
            target, old, _ = await _target(name, to)
            fleet = await _require_allowed(target, fleet)
            release = await show_dry_run(context, _source(target, old), fleet, old)
            message = f"{release.id} would run what {release.rolled_back_to} ran"
            return Completed(message=message, data=release)
        async with sole_flow(name, context.flow_run_id):
            target, old, healthy = await _target(name, to)
            fleet = await _require_allowed(target, fleet)
            runs = (old.release.id, old.release.rolled_back_to) if old and old.release else ()
            if old and healthy and target.id in runs:
                message = f"unchanged: {old.id} already serves what {target.id} ran"
                return Completed(name="Unchanged", message=message, data=old.release)
            release = await roll_out(context, _source(target, old), fleet, old)
    return Completed(message=f"{announcement(release)}, as {target.id} did", data=release)


def _source(target: Release, old: ReleaseRow | None) -> ReleaseSource:
    """What is applied from files stays theirs: the next `apply` tells that it was rolled back."""
    owner = old.release.applied_from if old and old.release else target.applied_from
    facts = {"applied_from": owner, "submission": target.submission}
    return ReleaseSource(target.spec, {"rolled_back_to": target.id, **facts}, target)


async def _require_allowed(target: Release, fleet: Fleet) -> Fleet:
    """Judge the earlier spec by the channel through which it was submitted."""
    with recorded_scope(target.submission, fleet):
        return await require_allowed(target.spec, fleet)


async def _target(name: str, to: str) -> tuple[Release, ReleaseRow | None, bool]:
    """The release to go back to, the one that serves, and whether it really does."""
    rows = await in_thread(ledger().releases.of_model, name)
    target = rollback_target(name, rows, to)
    return target, *await serving(target.spec)
