"""What is loaded beside the model: where the engine sees it, and what a person should know."""

from __future__ import annotations

from moorage.engines.keys import asks_for_a_key
from moorage.engines.launch import Mount
from moorage.engines.request import LaunchRequest
from moorage.engines.seat import mounts_of
from moorage.engines.vllm.adapters import Adapter
from moorage.models.adapter_config import base_model, is_made_for
from moorage.models.assets import AssetRole
from moorage.models.source import Companion

ADAPTERS_FOLDER = "/adapters"
DRAFT_FOLDER = "/draft"
UPDATES_FOLDER = "/loaded"
"""Where a container sees the adapters that are loaded while it serves."""


def companion_mounts(request: LaunchRequest) -> tuple[Mount, ...]:
    """Directories beside the model's that a container has to see."""
    beside = tuple(
        mount
        for item in request.companions
        for mount in mounts_of(item.model.path, item.model.files, _inside(item))
    )
    later = request.updates_folder
    return (*beside, Mount(source=later, target=UPDATES_FOLDER)) if later else beside


def adapters(request: LaunchRequest) -> tuple[Adapter, ...]:
    """The LoRA adapters of the spec, with the rank that the spec states or that they have."""
    stated = {item.name: item.rank for item in request.spec.lora}
    return tuple(
        Adapter(name=item.name, path=_seen(request, item), rank=stated[item.name] or item.rank)
        for item in request.companions
        if item.role == AssetRole.ADAPTER
    )


def draft_path(request: LaunchRequest) -> str:
    """The draft model's directory as the engine sees it; empty = there is none."""
    drafts = (item for item in request.companions if item.role == AssetRole.DRAFT)
    return next((_seen(request, item) for item in drafts), "")


def base_warnings(request: LaunchRequest) -> tuple[str, ...]:
    """Adapters that say that they were made for another model."""
    source = request.spec.source
    made_for = (
        (item.name, base_model(item.model.config))
        for item in request.companions
        if item.role == AssetRole.ADAPTER
    )
    return tuple(
        f"lora: {name} was made for {base}, and {source} is served"
        for name, base in made_for
        if not is_made_for(base, source)
    )


def update_warnings(request: LaunchRequest, key: str) -> tuple[str, ...]:
    """Adapters that anybody may exchange.

    Args:
        request: The seat.
        key: Name of the variable that makes the server ask for a key.
    """
    if request.spec.lora_updates is None or asks_for_a_key(request, key):
        return ()
    advice = f"`secrets: {{{key}: NAME}}` makes it ask for a key"
    return (f"lora_updates: whoever reaches the port may change what is served; {advice}",)


def _seen(request: LaunchRequest, item: Companion) -> str:
    return _inside(item) if request.in_container else item.model.path


def _inside(item: Companion) -> str:
    return DRAFT_FOLDER if item.role == AssetRole.DRAFT else f"{ADAPTERS_FOLDER}/{item.name}"
