"""Step resolve: pin the model, list its files, read its configuration and weight headers."""

from __future__ import annotations

import os

from prefect import task

from moorage.adapters.secrets import read_secrets
from moorage.adapters.sources import source_for
from moorage.models.source import ResolvedModel
from moorage.spec import ModelSpec
from moorage.units import human_bytes
from tasks.context import in_thread, settings
from tasks.journal import step
from tasks.retries import RETRIED

HUB_TOKEN = "HF_TOKEN"


@task(name="resolve", task_run_name="resolve {spec.source}", timeout_seconds=300, **RETRIED)
async def resolve(spec: ModelSpec) -> ResolvedModel:
    """Find the model at its source. Weights are not downloaded yet."""
    with step("resolve") as note:
        # A secret that is missing is told now, not when the old release has stopped for this one.
        await in_thread(read_secrets, sorted(set(spec.secrets.values())))
        token = await in_thread(hub_token, spec)
        source = source_for(spec, settings(), token)
        model = await in_thread(source.resolve, spec)
        note.say(
            f"{model.revision[:18]}, {len(model.files)} files,"
            f" {human_bytes(model.bytes_to_stage)}, {model.weights.family}"
        )
        return model


def hub_token(spec: ModelSpec) -> str | None:
    """The hub's token: the secret that the spec names, else the environment's."""
    if name := spec.secrets.get(HUB_TOKEN):
        return read_secrets([name])[name]
    return os.environ.get(HUB_TOKEN)
