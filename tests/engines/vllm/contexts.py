"""Contexts of a launch: a test names only what it is about."""

from __future__ import annotations

from typing import Any

from moorage.engines.flags import Flag
from moorage.engines.vllm.context import LaunchContext, Member
from moorage.spec.arguments import parse_words


def a_context(*words: str, **changes: Any) -> LaunchContext:
    values: dict[str, Any] = {
        "version": "0.32.0",
        "name": "tiny",
        "model": "/models/tiny",
        "args": parse_words(words),
        "accelerator_type": "cuda",
        "address": "10.0.0.1",
        "interface": "eth0",
        "ports": (40000, 40001, 40002, 40003, 40004),
    }
    return LaunchContext.model_validate({**values, **changes})


def hosts(*counts: int) -> tuple[Member, ...]:
    return tuple(
        Member(address=f"10.0.0.{number}", accelerators=count)
        for number, count in enumerate(counts, 1)
    )


def line(flags: tuple[Flag, ...]) -> str:
    return " ".join(token for flag in flags for token in flag.tokens)
