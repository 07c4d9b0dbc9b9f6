"""Hosts of which some are away, and on which nothing else goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

from moorage.adapters.hosts.observation import Observation
from moorage.common.failures import Cause, Failure
from moorage.engines.workload import Workload


def hosts_without(
    away: Collection[str],
    *,
    ready: bool | None = None,
    cause: Cause = Cause.RUNTIME_UNAVAILABLE,
) -> Callable[..., Any]:
    """In place of `runtime_for`: each host runs what it should, unless it is away."""

    def observe(workload: Workload) -> Observation:
        if workload.host in away:
            raise Failure(cause, f"{workload.host} is away")
        return Observation(running=True, ready=ready, detail="")

    return lambda *_: SimpleNamespace(observe=observe)
