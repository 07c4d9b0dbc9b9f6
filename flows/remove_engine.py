"""Remove an engine from a host: its images and its installed packages."""

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import NO_RESULT, flow_context, keep_result
from moorage.adapters.system.threads import in_thread
from moorage.engines.registry import ENGINES
from moorage.operations.engine_installation import stand_in
from moorage.releases.requester import Claim
from moorage.reports.form_parameters import THIS_MACHINE, FleetParameter
from moorage.spec import EngineName, RuntimeName
from tasks.installation import host_named, remove_installed
from tasks.policy import require_allowed


@flow(name="remove-engine", flow_run_name="remove {engine}", **NO_RESULT)
@keep_result
async def remove_engine(
    engine: EngineName,
    version: str = "",
    host: str = "",
    fleet: FleetParameter = THIS_MACHINE,
    requested_by: Claim = "",
) -> State[str]:
    """Remove an engine's images and packages from a host. Refused while a model uses it.

    Args:
        engine: Its name.
        version: Only this version; empty = all of them.
        host: Host of the fleet; empty = the only one.
        fleet: The hosts. Default: the worker's fleet, else this machine.
        requested_by: The requester, for the record; not verified.
    """
    spec = stand_in(engine, version, RuntimeName.AUTO)
    async with flow_context(spec.name, requested_by):
        fleet = await require_allowed(spec, fleet)
        there = await host_named(fleet, host)
        removed = await in_thread(remove_installed, ENGINES[engine], there, version)
        if not removed:
            return Completed(name="Unchanged", message=f"{there.name} has no {engine}", data="")
    return Completed(message=f"{there.name} has it no more", data="\n".join(removed))
