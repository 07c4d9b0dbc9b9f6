"""Unload a LoRA adapter from a model that serves on."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import told
from flows.result_recovery import remembered
from moorage.releases.loaded_adapters import holding, require_updates
from moorage.releases.requester import Claim
from moorage.spec import Name
from tasks.adapters import listed, running, tidy, unload
from tasks.cleanup import sole_flow
from tasks.context import in_thread


@flow(name="unload-adapter", flow_run_name="unload {adapter} from {model}", persist_result=False)
@remembered
async def unload_adapter(model: Name, adapter: Name, requested_by: Claim = "") -> State[str]:
    """Unload a LoRA adapter from every replica of a running model.

    Args:
        model: Name of the model, as in its spec.
        adapter: Name of the adapter, as it was loaded.
        requested_by: Who wants it, for the record; nobody checks it.
    """
    async with (
        told(model, requested_by) as story,
        sole_flow(model, story.flow_run_id, story.journal),
    ):
        row = await in_thread(running, model)
        release = require_updates(row)
        found = holding(row, adapter, await listed(row, release))
        await unload(release, adapter, found)
        await in_thread(tidy, model)
    return Completed(message=f"{row.id} no longer serves {adapter}", data=row.id)
