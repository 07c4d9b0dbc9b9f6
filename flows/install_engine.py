"""Install an engine on a host: an image by its digest, or packages in their own environment."""

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import NO_RESULT, flow_context, keep_result
from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.operations.engine_installation import stand_in, way_on
from moorage.releases.requester import Claim
from moorage.reports.form_parameters import THIS_MACHINE, FleetParameter
from moorage.spec import EngineName, RuntimeName
from tasks.installation import host_named, install_image, install_packages
from tasks.policy import is_from_command_line, require_allowed


@flow(name="install-engine", flow_run_name="install {engine}", **NO_RESULT)
@keep_result
async def install_engine(
    engine: EngineName,
    version: str = "",
    host: str = "",
    runtime: RuntimeName = RuntimeName.AUTO,
    fleet: FleetParameter = THIS_MACHINE,
    requested_by: Claim = "",
) -> State[str]:
    """Install an engine on a host before a model needs it. Repeating it changes nothing.

    Args:
        engine: Its name.
        version: Its version; empty = the one that this release of moorage was tested with.
        host: Host of the fleet; empty = the only one.
        runtime: A container's image (`docker`), or packages on this machine (`process`).
        fleet: The hosts. Default: the worker's fleet, else this machine.
        requested_by: The requester, for the record; not verified.
    """
    spec = stand_in(engine, version, runtime)
    async with flow_context(spec.name, requested_by):
        fleet = await require_allowed(spec, fleet)
        there = await host_named(fleet, host)
        way, image = way_on(ENGINES[engine], there, spec)
        if image:
            return Completed(
                message=f"{there.name} has it", data=await install_image(spec, image, there)
            )
        if not is_from_command_line():
            detail = (
                f"{engine} would be installed from packages, which run code while they are built"
            )
            raise Failure(
                Cause.POLICY_REFUSED,
                detail,
                suggestion=f"Run `moorage engines install {engine}` on the machine itself.",
            )
        made = await install_packages(engine, version)
    return Completed(message=f"this machine has it ({way})", data=made.path)
