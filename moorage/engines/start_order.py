"""The groups of containers of a plan that start at once, in order."""

from __future__ import annotations

from math import ceil

from moorage.engines.launch import LABEL_REPLICA, ContainerSpec, LaunchPlan

Device = tuple[str, str, str]


def start_groups(plan: LaunchPlan) -> tuple[LaunchPlan, ...]:
    """The plan in groups; each starts once the group before is ready.

    vLLM profiles the free memory of its accelerators while it starts, so replicas that share one
    are in different groups. All others are in the first, and leaders with their followers.
    """
    parts: list[list[ContainerSpec]] = []
    taken: list[set[Device]] = []
    for containers in _replicas(plan):
        devices = _devices(containers)
        turn = 1 + max((at for at, used in enumerate(taken) if used & devices), default=-1)
        if turn == len(parts):
            parts.append([])
            taken.append(set())
        parts[turn] += containers
        taken[turn] |= devices
    return tuple(plan.model_copy(update={"containers": tuple(part)}) for part in parts)


def split_off(plan: LaunchPlan, share: float) -> tuple[LaunchPlan, LaunchPlan]:
    """A share of the replicas of a plan, rounded up, and the rest.

    Args:
        plan: All of them.
        share: More than 0, at most 1: at least one replica is in the first part.
    """
    replicas = _replicas(plan)
    # Rounded first: 0.1 * 30 is a little more than 3 in floating point.
    count = max(1, ceil(round(share * len(replicas), 9)))
    first, rest = (
        [spec for containers in part for spec in containers]
        for part in (replicas[:count], replicas[count:])
    )
    return (
        plan.model_copy(update={"containers": tuple(first)}),
        plan.model_copy(update={"containers": tuple(rest)}),
    )


def _replicas(plan: LaunchPlan) -> list[list[ContainerSpec]]:
    replicas: dict[str, list[ContainerSpec]] = {}
    for container in plan.containers:
        replicas.setdefault(container.labels[LABEL_REPLICA], []).append(container)
    return list(replicas.values())


def _devices(containers: list[ContainerSpec]) -> set[Device]:
    return {(c.host, c.accelerator_type, device) for c in containers for device in c.devices}
