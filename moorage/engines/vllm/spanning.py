"""What a replica over several hosts cannot be, and what a person should know about one."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.common.failures import Cause, Failure
from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.cluster import is_clustered
from moorage.engines.vllm.context import LaunchContext
from moorage.engines.vllm.distributed import NATIVE_SINCE, topology_of
from moorage.engines.vllm.version import at_least
from moorage.placement.placement import CPU
from moorage.placement.topology import Shape

WITHOUT_RAY = "0.18.0"
"""First version whose images hold no Ray (vLLM pull request 36170)."""


def spanning_refusal(request: LaunchRequest, context: LaunchContext) -> Failure | None:
    """Why a seat must not be started as a part of its replica; None = it may be."""
    if not request.spans_hosts:
        return None
    if request.spec.engine.command is not None:
        return Failure(
            Cause.BAD_SPEC,
            "engine.command: one line cannot start the different hosts of a replica",
            suggestion="Use `engine.entrypoint` and `engine.args`.",
        )
    if is_clustered(request) or not context.version:
        return None
    if at_least(context.version, NATIVE_SINCE) or topology_of(context).shape == Shape.DP_ONLY:
        return None
    return Failure(
        Cause.BAD_SPEC,
        f"engine.distributed: vLLM {context.version} cannot join hosts itself",
        suggestion=f"Take vLLM {NATIVE_SINCE} or newer, or set `engine.distributed: ray`.",
    )


def spanning_warnings(request: LaunchRequest) -> Iterator[str]:
    """What is not known, or not there, on the hosts of a replica."""
    if not request.spans_hosts:
        return
    if not request.host.interface:
        yield (
            f"{request.host.name}: its network interface to the other hosts is not known, so the"
            " engine guesses; write `interface` in the fleet file"
        )
    if not is_clustered(request) or not request.leads:
        return
    if request.seat.accelerator_type == CPU:
        yield "vLLM on CPU refuses Ray: the cluster starts, the engine ends; take `native`"
    version = request.image.engine_version if request.image else ""
    packages = request.spec.engine.packages
    if at_least(version, WITHOUT_RAY) and not any(name.startswith("ray") for name in packages):
        yield (
            f"vLLM's images hold no Ray since {WITHOUT_RAY}: `engine.packages: ['ray[cgraph]']`"
            " installs it, if this image has none"
        )
