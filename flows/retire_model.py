"""Retire a model: stop its release and free its claims."""

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import NO_RESULT, flow_context, keep_result
from moorage.adapters.system.threads import in_thread, run_uninterrupted
from moorage.common.failures import Cause, Failure
from moorage.releases.requester import Claim
from moorage.releases.states import ReleaseState
from moorage.spec import Name
from tasks.adapters import tidy
from tasks.cleanup import must_be_clean
from tasks.compare import sole_flow
from tasks.context import ledger
from tasks.journal import step
from tasks.replace import stop_sleeper
from tasks.schedules import end_schedule
from tasks.stopping import retire


@flow(name="retire-model", flow_run_name="retire {name}", **NO_RESULT)
@keep_result
async def retire_model(name: Name, requested_by: Claim = "") -> State[str]:
    """Stop the running release of a model, and free its memory and ports.

    Requests in flight may finish first, for the time that the spec allows (`stopping`). Failed
    releases of the model no longer count as trouble.

    Args:
        name: Name of the model, as in its spec.
        requested_by: The requester, for the record; not verified.
    """
    async with (
        flow_context(name, requested_by) as context,
        sole_flow(name, context.flow_run_id, retires=True),
    ):
        running = await in_thread(ledger().releases.running, name)
        if running is None and (asleep := await in_thread(ledger().releases.asleep, name)):
            await run_uninterrupted(stop_sleeper, name)
            await in_thread(ledger().releases.end, asleep.id, ReleaseState.STOPPED, "retired")
            await in_thread(tidy, name)
            await end_schedule(asleep)
            return Completed(message=f"{asleep.id} is retired", data=asleep.id)
        if running is None:
            if not await in_thread(ledger().releases.newest, name):
                raise Failure(Cause.UNKNOWN_RELEASE, f"no model is named {name}")
            await in_thread(must_be_clean, name)
            if await in_thread(ledger().releases.retire_failed, name):
                return Completed(message=f"{name} is retired; it had failed", data="")
            return Completed(name="Unchanged", message=f"{name} was not running", data="")
        with step("stop") as note:
            drained = await retire(running)
            await in_thread(tidy, name)
            how = f": {drained.summary}" if drained.summary else ""
            note.say(f"{running.id} is stopped{how}; its claims are free")
        await end_schedule(running)
    return Completed(message=f"{running.id} is retired", data=running.id)
