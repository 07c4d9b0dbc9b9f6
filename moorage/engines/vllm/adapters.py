"""LoRA adapters that are loaded at the start."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from moorage.arguments import is_written
from moorage.engines.vllm.rule import derived, wanted
from moorage.launch import Flag
from moorage.models.memory.options import allowed_rank
from moorage.values import Value


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


def adapter_flags(adapters: Sequence[Adapter], base: str, words: Sequence[str]) -> tuple[Flag, ...]:
    """LoRA's switch, number, adapters and rank; nothing where the user lists adapters.

    Args:
        adapters: What is to be loaded.
        base: Name under which the model itself is served.
        words: The user's arguments.
    """
    if not adapters or is_written(words, "--lora-modules"):
        return ()
    modules = [
        json.dumps({"name": item.name, "path": item.path, "base_model_name": base})
        for item in adapters
    ]
    number = f"{len(adapters)} adapters at once"
    flags = [
        wanted("lora", "--enable-lora"),
        derived(number, "--max-loras", str(len(adapters))),
        wanted("lora", "--lora-modules", *modules),
    ]
    if rank := max((item.rank or 0 for item in adapters), default=0):
        flags.append(
            derived(f"the largest rank is {rank}", "--max-lora-rank", str(allowed_rank(rank)))
        )
    return tuple(flags)


def largest_rank(config: Mapping[str, Any] | None) -> int | None:
    """The largest rank in an `adapter_config.json`: its `r`, or that of single layers."""
    if not isinstance(config, Mapping):
        return None
    pattern = config.get("rank_pattern")
    single = pattern.values() if isinstance(pattern, Mapping) else ()
    ranks = [rank for rank in (config.get("r"), *single) if isinstance(rank, int)]
    return max(ranks, default=None)
