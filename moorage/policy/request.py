"""What a run asks for, as far as a policy is concerned."""

from __future__ import annotations

from moorage.common.values import Value
from moorage.inventory.fleet import Fleet
from moorage.placement.placement import Placement
from moorage.policy.channel import Submission
from moorage.spec import ModelSpec

Folders = tuple[tuple[str, str], ...]
"""Fields with a `file://` source, each with its folder, links followed."""


class Usage(Value):
    """Replicas and accelerators."""

    replicas: int = 0
    accelerators: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            replicas=self.replicas + other.replicas,
            accelerators=self.accelerators + other.accelerators,
        )


class Request(Value):
    """A spec, who brought it, and what has been found out about it.

    Attributes:
        spec: The spec.
        submission: How it was submitted.
        fleet: The hosts that it may be placed on.
        applied_from: Set of files that it says it is from.
        folders: Its `file://` sources.
        roots: The folders of `file_roots`, links followed.
        variables: Names in `secrets` that are environment variables of this process.
        others: What the other models of its owner hold.
    """

    spec: ModelSpec
    submission: Submission
    fleet: Fleet = Fleet()
    applied_from: str = ""
    folders: Folders = ()
    roots: tuple[str, ...] = ()
    variables: frozenset[str] = frozenset()
    others: Usage = Usage()


def usage_of(spec: ModelSpec, placement: Placement | None = None) -> Usage:
    """What a model holds: as it is placed, else the least that its spec asks for."""
    scaling = spec.engine.application.autoscaling if spec.engine.application else None
    replicas = scaling.max_replicas if scaling else spec.replicas
    if placement is None or not placement.fits:
        return Usage(replicas=replicas, accelerators=_least(spec, replicas))
    if spec.placement.cluster:
        seat = placement.seats[0]
        each = seat.tensor * seat.pipeline
        return Usage(replicas=replicas, accelerators=max(_least(spec, replicas), each * replicas))
    held = {(seat.host, index) for seat in placement.seats for index in seat.accelerators}
    return Usage(replicas=replicas, accelerators=len(held))


def _least(spec: ModelSpec, replicas: int) -> int:
    wanted = spec.placement.accelerators
    if isinstance(wanted, int):
        return wanted * replicas
    return 0 if wanted == "auto" else len(wanted)
