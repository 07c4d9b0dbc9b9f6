"""Plan a deployment: the steps of a deploy, up to the first effect that changes anything."""

from prefect import flow
from prefect.client.schemas.objects import State

from flows.dry_run import plan_deploy
from flows.flow_context import NO_RESULT, ending, flow_context, keep_result
from moorage.adapters.prefect.task_runner import task_runner
from moorage.releases.release import Release
from moorage.reports.form_parameters import THIS_MACHINE, FleetParameter, SpecParameter


@flow(name="plan-model", flow_run_name="plan {spec.name}", **NO_RESULT, task_runner=task_runner())
@keep_result
async def plan_model(spec: SpecParameter, fleet: FleetParameter = THIS_MACHINE) -> State[Release]:
    """Show exactly what deploying a model would run now, and why. Nothing is claimed or started.

    Args:
        spec: The model to serve. Only name and source are required; all other fields have
            defaults.
        fleet: The hosts on which it may run. Default: the worker's fleet, else this machine.
    """
    async with flow_context(spec.name) as context:
        return ending(await plan_deploy(context, spec, fleet))
