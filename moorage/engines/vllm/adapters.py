"""LoRA adapters: those of the start, and room for those that are loaded later."""

from __future__ import annotations

import json
from collections.abc import Sequence

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin, Value
from moorage.engines.launch import Flag, Variable
from moorage.engines.vllm.rule import derived, variable, wanted
from moorage.memory.options import allowed_rank
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
