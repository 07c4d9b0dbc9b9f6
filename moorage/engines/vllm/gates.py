"""Arguments that only newer versions know."""

from __future__ import annotations

from moorage.engines.launch import Flag
from moorage.engines.vllm.context import LaunchContext
from moorage.engines.vllm.rule import by_default
from moorage.engines.vllm.version import at_least

GATES = (
    (
        "0.16.0",
        by_default(
            "what scrapes the metrics would fill the log",
            "--disable-access-log-for-endpoints",
            "/metrics",
        ),
    ),
    (
        "0.9.0.1",
        by_default(
            "answers say how much of the prompt came from the cache",
            "--enable-prompt-tokens-details",
        ),
    ),
)
"""First version that has it, and the flag; the second had no effect before (vLLM PR 18149)."""


def gated_flags(context: LaunchContext) -> tuple[Flag, ...]:
    """What the version knows; nothing without a known version."""
    return tuple(flag for since, flag in GATES if at_least(context.version, since))
