"""A request that fits nowhere, and trying it under other circumstances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moorage.inventory.snapshot import FleetSnapshot
from moorage.memory import MemoryModel
from moorage.placement.place import place_replicas
from moorage.placement.placement import Seat
from moorage.placement.request import Request
from moorage.placement.view import HostView


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried.

    Attributes:
        request: What fits nowhere.
        exact: The memory model behind it; None where there is only an estimate.
        fleet: The fleet that it does not fit on.
        views: Its hosts.
    """

    request: Request
    exact: MemoryModel | None
    fleet: FleetSnapshot
    views: list[HostView]

    def seats(
        self, request: Request | None = None, views: Sequence[HostView] | None = None
    ) -> tuple[Seat, ...]:
        """The seats of all replicas of another request, or on other hosts; none = no fit."""
        return place_replicas(request or self.request, self.views if views is None else views)[0]
