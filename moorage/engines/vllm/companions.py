"""LoRA adapters and draft models: their flags, mounts and warnings."""

import json
from collections.abc import Sequence

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin, Value
from moorage.engines.api_key import requires_key
from moorage.engines.flags import Flag, Variable, derived_flag, spec_flag, variable
from moorage.engines.launch import Mount
from moorage.engines.request import LaunchRequest
from moorage.engines.seat import mounts_of
from moorage.memory.options import LoraOptions, allowed_rank
from moorage.models.assets import base_model, is_made_for
from moorage.models.pin import AssetRole
from moorage.models.source import Companion
from moorage.spec import AdapterUpdatesSpec, SpeculativeSpec
from moorage.spec.arguments import EngineArguments


class Adapter(Value):
    """One adapter, under the name that it is served by."""

    name: str
    path: str
    """Its directory as the engine sees it."""

    rank: int | None = None
    """Largest rank in it; None = unknown."""


def adapter_flags(
    adapters: Sequence[Adapter],
    base: str,
    args: EngineArguments,
    updates: AdapterUpdatesSpec | None = None,
) -> tuple[Flag, ...]:
    """LoRA's switch, number, adapters and rank; nothing where the user lists adapters.

    Args:
        adapters: The adapters of the start.
        base: Name under which the model is served.
        args: The user's arguments.
        updates: Room for adapters that are loaded later.

    Raises:
        Failure: `BAD_SPEC` for later adapters on several API servers: only one would load them.
    """
    if updates and (args.whole_number("--api-server-count") or 1) > 1:
        raise Failure(
            Cause.BAD_SPEC,
            "lora_updates: vLLM does not load adapters later with --api-server-count above 1",
            suggestion="Leave --api-server-count or `lora_updates` out; `replicas` serves more.",
        )
    if not (adapters or updates) or args.states("--lora-modules"):
        return ()
    later = updates.max if updates else 0
    number = f"{len(adapters)} adapters at once" + f", and {later} loaded later" * bool(later)
    modules = [_module(item, base) for item in adapters]
    ranks = [item.rank or 0 for item in adapters] + ([updates.rank] if updates else [])
    rank = max(ranks)
    why = f"the largest rank is {rank}"
    return (
        spec_flag("lora" if adapters else "lora_updates", "--enable-lora"),
        derived_flag(number, "--max-loras", str(len(adapters) + later)),
        *([spec_flag("lora", "--lora-modules", *modules)] if modules else []),
        *([derived_flag(why, "--max-lora-rank", str(allowed_rank(rank)))] if rank else []),
    )


def speculative_flags(speculative: SpeculativeSpec | None, model: str = "") -> tuple[Flag, ...]:
    """`--speculative-config`; `model` is the draft model as the engine sees it, empty = none."""
    if speculative is None:
        return ()
    config = {
        "method": speculative.method.value,
        "num_speculative_tokens": speculative.tokens,
        "prompt_lookup_max": speculative.ngram_max,
        "prompt_lookup_min": speculative.ngram_min,
        "model": model,
    }
    stated = {key: value for key, value in config.items() if value}
    return (spec_flag(f"{speculative.method} drafts", "--speculative-config", json.dumps(stated)),)


def update_variables(updates: AdapterUpdatesSpec | None) -> tuple[Variable, ...]:
    """The variable that opens the endpoints for loading and unloading adapters."""
    if updates is None:
        return ()
    reason = "lora_updates: adapters are loaded and unloaded while it serves"
    return (variable("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "1", reason, Origin.USER),)


def _module(adapter: Adapter, base: str) -> str:
    return json.dumps({"name": adapter.name, "path": adapter.path, "base_model_name": base})


ADAPTERS_FOLDER = "/adapters"
DRAFT_FOLDER = "/draft"
UPDATES_FOLDER = "/loaded"
"""Folder in a container for adapters that are loaded while it serves."""


def companion_mounts(request: LaunchRequest) -> tuple[Mount, ...]:
    """Mounts of adapters and draft model, and of the folder for later adapters."""
    mounted = tuple(
        mount
        for item in request.companions
        for mount in mounts_of(item.model.path, item.model.files, _inside(item))
    )
    later = request.updates_folder
    return (*mounted, Mount(source=later, target=UPDATES_FOLDER)) if later else mounted


def adapters(request: LaunchRequest) -> tuple[Adapter, ...]:
    """The LoRA adapters of the spec, with the rank that the spec states or that they have."""
    stated = {item.name: item.rank for item in request.spec.lora}
    return tuple(
        Adapter(
            name=item.name, path=_visible_path(request, item), rank=stated[item.name] or item.rank
        )
        for item in request.companions
        if item.role == AssetRole.ADAPTER
    )


def draft_path(request: LaunchRequest) -> str:
    """The draft model's directory as the engine sees it; empty = there is none."""
    drafts = (item for item in request.companions if item.role == AssetRole.DRAFT)
    return next((_visible_path(request, item) for item in drafts), "")


def memory_arguments(
    lora: LoraOptions | None, speculative: SpeculativeSpec | None, written: EngineArguments
) -> tuple[str, ...]:
    """Arguments of adapters and drafts that decide about memory, as they are known before a launch.

    The user's own arguments, `written`, follow and win.
    """
    words: tuple[str, ...] = ()
    if lora and not (written.switch("--enable-lora") or written.states("--lora-modules")):
        sizes = ("--max-loras", str(lora.max_loras), "--max-lora-rank", str(lora.max_rank))
        words = ("--enable-lora", *sizes)
    if speculative and not written.states("--speculative-config"):
        flags = speculative_flags(speculative, speculative.model or "")
        words += tuple(word for flag in flags for word in flag.tokens)
    return words


def base_warnings(request: LaunchRequest) -> tuple[str, ...]:
    """Warnings about adapters whose config names another base model."""
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
    """A warning where anybody may exchange adapters; `key` is the variable of the server's key."""
    if request.spec.lora_updates is None or requires_key(request, key):
        return ()
    advice = f"`secrets: {{{key}: NAME}}` makes it ask for a key"
    return (f"lora_updates: whoever reaches the port may change what is served; {advice}",)


def _visible_path(request: LaunchRequest, item: Companion) -> str:
    return _inside(item) if request.in_container else item.model.path


def _inside(item: Companion) -> str:
    return DRAFT_FOLDER if item.role == AssetRole.DRAFT else f"{ADAPTERS_FOLDER}/{item.name}"
