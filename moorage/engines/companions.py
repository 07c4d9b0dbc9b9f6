"""LoRA adapters and draft model that an engine loads with a model, and their paths for it."""

from moorage.common.values import Value
from moorage.engines.launch import Mount
from moorage.engines.request import LaunchRequest
from moorage.engines.seat import mounts_of
from moorage.models.assets import base_model, is_made_for
from moorage.models.pin import AssetRole
from moorage.models.source import Companion

ADAPTERS_FOLDER = "/adapters"
DRAFT_FOLDER = "/draft"
UPDATES_FOLDER = "/loaded"
"""Folder in a container for adapters loaded while the engine serves."""


class Adapter(Value):
    """One adapter, with its served name."""

    name: str
    path: str
    """Its directory as the engine sees it."""

    rank: int | None = None
    """Its largest rank; None = unknown."""


def companion_mounts(request: LaunchRequest) -> tuple[Mount, ...]:
    """Mounts of adapters, draft model, and the folder for adapters loaded later."""
    mounted = tuple(
        mount
        for item in request.model.companions
        for mount in mounts_of(item.model.path, item.model.files, _inside(item))
    )
    later = request.model.updates_folder
    return (*mounted, Mount(source=later, target=UPDATES_FOLDER)) if later else mounted


def adapters(request: LaunchRequest) -> tuple[Adapter, ...]:
    """The LoRA adapters of the spec, with the rank from the spec, else from the adapter."""
    stated = {item.name: item.rank for item in request.spec.lora}
    return tuple(
        Adapter(
            name=item.name, path=_visible_path(request, item), rank=stated[item.name] or item.rank
        )
        for item in request.model.companions
        if item.role == AssetRole.ADAPTER
    )


def draft_path(request: LaunchRequest) -> str:
    """The draft model's directory as the engine sees it; empty = there is none."""
    drafts = (item for item in request.model.companions if item.role == AssetRole.DRAFT)
    return next((_visible_path(request, item) for item in drafts), "")


def base_warnings(request: LaunchRequest) -> tuple[str, ...]:
    """Warnings about adapters whose config names another base model."""
    source = request.spec.source
    made_for = (
        (item.name, base_model(item.model.config))
        for item in request.model.companions
        if item.role == AssetRole.ADAPTER
    )
    return tuple(
        f"lora: {name} was made for {base}, and {source} is served"
        for name, base in made_for
        if not is_made_for(base, source)
    )


def _visible_path(request: LaunchRequest, item: Companion) -> str:
    return _inside(item) if request.in_container else item.model.path


def _inside(item: Companion) -> str:
    return DRAFT_FOLDER if item.role == AssetRole.DRAFT else f"{ADAPTERS_FOLDER}/{item.name}"
