"""LoRA adapters and draft models: their flags, mounts and warnings."""

from __future__ import annotations

import json
from collections.abc import Sequence

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin, Value
from moorage.engines.api_key import asks_for_a_key
from moorage.engines.launch import Flag, Mount, Variable
from moorage.engines.request import LaunchRequest
from moorage.engines.seat import mounts_of
from moorage.engines.vllm.flags import derived, variable, wanted
from moorage.memory.options import allowed_rank
from moorage.models.adapter_config import base_model, is_made_for
from moorage.models.assets import AssetRole
from moorage.models.source import Companion
from moorage.spec import AdapterUpdatesSpec
from moorage.spec.arguments import is_written, whole_number


class Adapter(Value):
    """One adapter.

    Attributes:
        name: Name under which it is asked for.
        path: Its directory as the engine sees it.
        rank: Largest rank in it; None = unknown.
    """

    name: str
    path: str
    rank: int | None = None


def adapter_flags(
    adapters: Sequence[Adapter],
    base: str,
    words: Sequence[str],
    updates: AdapterUpdatesSpec | None = None,
) -> tuple[Flag, ...]:
    """LoRA's switch, number, adapters and rank; nothing where the user lists adapters.

    Args:
        adapters: What is to be loaded.
        base: Name under which the model itself is served.
        words: The user's arguments.
        updates: Room for adapters that are loaded while it serves.

    Raises:
        Failure: `BAD_SPEC` for later adapters on several API servers: vLLM tells only one of them.
    """
    if updates:
        _require_one_server(words)
    if not (adapters or updates) or is_written(words, "--lora-modules"):
        return ()
    later = updates.max if updates else 0
    number = f"{len(adapters)} adapters at once" + f", and {later} loaded later" * bool(later)
    flags = [
        wanted("lora" if adapters else "lora_updates", "--enable-lora"),
        derived(number, "--max-loras", str(len(adapters) + later)),
    ]
    if adapters:
        flags.append(wanted("lora", "--lora-modules", *(_module(item, base) for item in adapters)))
    ranks = [item.rank or 0 for item in adapters] + ([updates.rank] if updates else [])
    if rank := max(ranks):
        flags.append(
            derived(f"the largest rank is {rank}", "--max-lora-rank", str(allowed_rank(rank)))
        )
    return tuple(flags)


def update_variables(updates: AdapterUpdatesSpec | None) -> tuple[Variable, ...]:
    """What opens the endpoints through which adapters come and go."""
    if updates is None:
        return ()
    reason = "lora_updates: adapters are loaded and unloaded while it serves"
    return (variable("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "1", reason, Origin.USER),)


def _require_one_server(words: Sequence[str]) -> None:
    if (whole_number(words, "--api-server-count", "-asc") or 1) > 1:
        raise Failure(
            Cause.BAD_SPEC,
            "lora_updates: vLLM does not load adapters later with --api-server-count above 1",
            suggestion="Leave --api-server-count or `lora_updates` out; `replicas` serves more.",
        )


def _module(adapter: Adapter, base: str) -> str:
    return json.dumps({"name": adapter.name, "path": adapter.path, "base_model_name": base})


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
