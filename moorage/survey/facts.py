"""What is known of a host from a look at it."""

from __future__ import annotations

from moorage.placement.snapshot import Accelerator
from moorage.survey.routes import Route
from moorage.values import Value


class HostFacts(Value):
    """A host at one moment.

    Attributes:
        cores: Logical processors.
        ram_total: Bytes of RAM.
        ram_free: Bytes of RAM that are available without swapping.
        ports: TCP ports on which something listens.
        disk_free: Bytes that are free where models are kept; None = it was not looked at.
        clock: Seconds since 1970 by its clock; None = not asked.
        accelerators: In index order.
        routes: Nets that its interfaces are on.
        topology: How the accelerators are joined, as the driver draws it; empty = not told.
        troubles: What could not be found out, and why.
    """

    cores: int
    ram_total: int
    ram_free: int
    ports: tuple[int, ...] = ()
    disk_free: int | None = None
    clock: float | None = None
    accelerators: tuple[Accelerator, ...] = ()
    routes: tuple[Route, ...] = ()
    topology: str = ""
    troubles: tuple[str, ...] = ()
