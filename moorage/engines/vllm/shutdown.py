"""How long vLLM itself lets requests in flight go on after SIGTERM."""

from __future__ import annotations

from moorage.engines.draining import Busy
from moorage.engines.launch import Flag
from moorage.engines.vllm.context import LaunchContext
from moorage.engines.vllm.rule import derived
from moorage.engines.vllm.version import at_least

OPTION = "--shutdown-timeout"
SINCE = "0.18.0"
"""First version with the option (vLLM PR 36666); without it SIGTERM aborts what is in flight."""

IN_FLIGHT = Busy(
    path="/metrics",
    metrics=("vllm:num_requests_running", "vllm:num_requests_waiting"),
    progress=("vllm:generation_tokens_total",),
)
"""As of vLLM 0.32. They change with each step of the engine, so a request in its first step does
not count yet; it is the option that saves it. The API key does not guard them."""


def shutdown_flags(context: LaunchContext) -> tuple[Flag, ...]:
    """Its own time-out, which covers requests in flight and the 5 to 10 s of its end."""
    if not context.shutdown_seconds or not at_least(context.version, SINCE):
        return ()
    reason = "`stopping.grace_seconds`: requests in flight go on after SIGTERM"
    return (derived(reason, OPTION, str(context.shutdown_seconds)),)
