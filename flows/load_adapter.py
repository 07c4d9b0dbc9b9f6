"""Load a LoRA adapter into a running model, without a restart."""

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.flow_context import NO_RESULT, flow_context, keep_result
from moorage.adapters.system.threads import run_shielded, run_uninterrupted
from moorage.common.saga import Saga
from moorage.models.assets import adapter_asset
from moorage.models.pin import Pin
from moorage.models.source import Companion
from moorage.releases.loaded_adapters import lacking, require_loadable, require_updates
from moorage.releases.requester import Claim
from moorage.spec import AdapterSpec, Name
from tasks.adapters import load, record_workloads, running_release, served_adapters, tidy, undo_load
from tasks.analyze import resolve_asset
from tasks.compare import sole_flow
from tasks.policy import require_allowed_adapter
from tasks.stage import stage_asset


@flow(name="load-adapter", flow_run_name="load {adapter.name} into {model}", **NO_RESULT)
@keep_result
async def load_adapter(model: Name, adapter: AdapterSpec, requested_by: Claim = "") -> State[Pin]:
    """Load a LoRA adapter into every replica of a running model, or into none.

    Args:
        model: Name of the model, as in its spec. The spec must have `lora_updates`.
        adapter: The adapter to serve. It stays until it is unloaded or the engine starts again; a
            deploy begins with the adapters of the spec.
        requested_by: The requester, for the record; not verified.
    """
    async with flow_context(model, requested_by) as context, sole_flow(model, context.flow_run_id):
        await require_allowed_adapter(adapter)
        row = await running_release(model)
        release = require_updates(row)
        asset = adapter_asset(adapter)
        found = await resolve_asset(release.spec, asset)
        companion = Companion(role=asset.role, name=asset.name, model=found)
        require_loadable(release, companion)
        missing = lacking(row, companion.pin, await served_adapters(row, release))
        if not missing:
            message = f"unchanged: {row.id} already serves {adapter.name} at this revision"
            return Completed(name="Unchanged", message=message, data=companion.pin)
        there = await stage_asset(release.spec, asset, found)
        companion = companion.model_copy(update={"model": there})
        with Saga(context.undone, run_shielded) as saga:
            saga.arm("remove its files", tidy, model)
            for workload in missing:
                saga.arm(
                    f"unload it from {workload.name}", undo_load, release, adapter.name, workload
                )
            holding = await load(release, companion, missing)
            await run_uninterrupted(record_workloads, release, holding)
    return Completed(message=f"{row.id} serves {adapter.name}", data=companion.pin)
