"""Step resolve: pin the model and what goes with it, list files, read headers."""

import asyncio

from moorage.adapters.secrets import read_secrets
from moorage.adapters.sources import read_keys, resolve_one
from moorage.adapters.system.threads import in_thread
from moorage.common.units import counted, human_bytes
from moorage.models.assets import Asset, assets_of
from moorage.models.source import ResolvedModel, join_companions
from moorage.spec import ModelSpec
from tasks.context import settings
from tasks.flow_task import flow_task
from tasks.journal import step

RESOLVE_SECONDS = 300


async def resolve(spec: ModelSpec) -> ResolvedModel:
    """Find the model, its adapters and its draft model. Weights are not downloaded yet."""
    assets = assets_of(spec)
    found = await asyncio.gather(*(resolve_asset(spec, asset) for asset in assets))
    later = str(settings().loaded(spec.name)) if spec.lora_updates else ""
    return join_companions(assets, found).model_copy(update={"updates_folder": later})


async def resolve_untracked(spec: ModelSpec) -> ResolvedModel:
    """The same without task runs: of many models in one run they would be too many to read."""
    assets = assets_of(spec)
    found = await asyncio.gather(*(resolve_asset.untracked(spec, asset) for asset in assets))
    return join_companions(assets, found)


@flow_task("resolve", "resolve {asset.source}", timeout_seconds=RESOLVE_SECONDS, retried=True)
async def resolve_asset(spec: ModelSpec, asset: Asset) -> ResolvedModel:
    """Find one of a spec's assets at its source."""
    with step(f"resolve{asset.step}") as note:
        # A missing secret fails now, not when the old release has stopped for this one.
        await in_thread(read_secrets, sorted(set(spec.secrets.values())))
        keys = await in_thread(read_keys, spec)
        found = await in_thread(resolve_one, asset, settings(), keys)
        note.say(
            f"{found.revision[:18]}, {counted(len(found.files), 'file')},"
            f" {human_bytes(found.bytes_to_stage)}, {found.weights.family}"
        )
        return found
