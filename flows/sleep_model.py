"""Put a model to sleep: its memory is free until a request wakes it."""

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import NO_RESULT, flow_context, keep_result
from moorage.adapters.system.threads import in_thread
from moorage.releases.requester import Claim
from moorage.spec import Name
from tasks.compare import sole_flow
from tasks.context import ledger
from tasks.sleep import put_to_sleep, sleeping_release


@flow(name="sleep-model", flow_run_name="put {name} to sleep", **NO_RESULT)
@keep_result
async def sleep_model(
    name: Name, reason: str = "requested", requested_by: Claim = ""
) -> State[str]:
    """Put a model to sleep: free its claims, but keep its release, which a request can wake.

    Requests in flight may finish first, for the time that the spec allows (`stopping`).

    Args:
        name: Name of the model, as in its spec.
        reason: The reason, for the record.
        requested_by: The requester, for the record; not verified.
    """
    async with flow_context(name, requested_by) as context, sole_flow(name, context.flow_run_id):
        running = await in_thread(ledger().releases.running, name)
        if running is None:
            asleep = await in_thread(sleeping_release, name)
            return Completed(name="Unchanged", message=f"{asleep.id} sleeps", data=asleep.id)
        await put_to_sleep(running, reason)
    return Completed(message=f"{running.id} sleeps", data=running.id)
