"""Unload a LoRA adapter from a running model, without a restart."""

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import NO_RESULT, flow_context, keep_result
from moorage.adapters.system.threads import in_thread
from moorage.releases.loaded_adapters import holding, require_updates
from moorage.releases.requester import Claim
from moorage.spec import Name
from tasks.adapters import running_release, served_adapters, tidy, unload
from tasks.compare import sole_flow


@flow(name="unload-adapter", flow_run_name="unload {adapter} from {model}", **NO_RESULT)
@keep_result
async def unload_adapter(model: Name, adapter: Name, requested_by: Claim = "") -> State[str]:
    """Unload a LoRA adapter from every replica of a running model.

    Args:
        model: Name of the model, as in its spec.
        adapter: Name of the loaded adapter.
        requested_by: The requester, for the record; not verified.
    """
    async with flow_context(model, requested_by) as context, sole_flow(model, context.flow_run_id):
        row = await running_release(model)
        release = require_updates(row)
        found = holding(row, adapter, await served_adapters(row, release))
        await unload(release, adapter, found)
        await in_thread(tidy, model)
    return Completed(message=f"{row.id} no longer serves {adapter}", data=row.id)
