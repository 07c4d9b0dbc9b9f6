"""Wake a sleeping model: it serves again in its place and exactly as planned."""

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import NO_RESULT, flow_context, keep_result
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Failure
from moorage.inventory.fleet import Fleet
from moorage.releases.release_row import ReleaseRow
from moorage.releases.requester import Claim
from moorage.reports.form_parameters import THIS_MACHINE, FleetParameter
from moorage.spec import Name
from tasks.addresses import follow
from tasks.compare import sole_flow
from tasks.context import ledger
from tasks.policy import (
    channel_scope,
    recorded_scope,
    require_allowed,
    require_allowed_size,
    settled_fleet,
)
from tasks.restore_image import registries_scope
from tasks.sleep import record_failure, sleeping_release, wake
from tasks.survey import survey


@flow(name="wake-model", flow_run_name="wake {name}", **NO_RESULT)
@keep_result
async def wake_model(
    name: Name, fleet: FleetParameter = THIS_MACHINE, requested_by: Claim = ""
) -> State[str]:
    """Wake a sleeping model and verify that it answers; if it does not, it goes back to sleep.

    Args:
        name: Name of the model, as in its spec.
        fleet: The hosts. Default: the worker's fleet, else the hosts on which it was deployed.
        requested_by: The requester, for the record; not verified.
    """
    async with flow_context(name, requested_by) as context:
        fleet = await settled_fleet(fleet)
        async with sole_flow(name, context.flow_run_id):
            if running := await in_thread(ledger().releases.running, name):
                message = f"{running.id} serves already"
                return Completed(name="Unchanged", message=message, data=running.id)
            row = await in_thread(sleeping_release, name)
            try:
                allowed = await _allowed_fleet(row, fleet)
            except Failure as failure:
                await record_failure(row, failure)
                raise
            if fleet != Fleet():  # the hosts of its record may be reached otherwise by now
                await follow(allowed)
                row = await in_thread(sleeping_release, name)
            with registries_scope(allowed.registries):
                await wake(row, await survey(_its_hosts(row, allowed)))
    return Completed(message=f"{row.id} serves again", data=row.id)


async def _allowed_fleet(row: ReleaseRow, fleet: Fleet) -> Fleet:
    """Check the policy for its spec and place, for the channel through which it was submitted.

    Where neither run nor site names a fleet, the hosts of its record are checked in the same way.
    """
    assert row.release, "a sleeper has a record"
    release, submission = row.release, row.release.submission
    if fleet == Fleet() and release.hosts:
        with channel_scope(submission.channel):
            fleet = await settled_fleet(Fleet(hosts=release.hosts))
    if release.placement:
        await require_allowed_size(release.spec, release.placement, submission)
    with recorded_scope(submission, fleet):
        return await require_allowed(release.spec, fleet)


def _its_hosts(row: ReleaseRow, fleet: Fleet) -> Fleet:
    """The fleet with only the machines of its place: a wake waits for no other, which may be away.

    A machine keeps all its names, by which the ledger recognizes it.
    """
    seats = {seat.host for seat in row.placement.seats} if row.placement else set[str]()
    machines = {host.access.machine for host in fleet.hosts if host.name in seats}
    hosts = tuple(host for host in fleet.hosts if host.access.machine in machines)
    return fleet.model_copy(update={"hosts": hosts})
