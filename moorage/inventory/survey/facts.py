"""Facts about a host as the survey reads them, and its network routes."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, ip_address

from moorage.common.values import Value
from moorage.inventory.snapshot import Accelerator

HEADING = "Iface"


class Route(Value):
    """A net that an interface is directly on."""

    net: IPv4Network
    interface: str


def read_routes(table: str) -> tuple[Route, ...]:
    """The nets in `/proc/net/route` that need no gateway; what is no such line is left out."""
    rows = (line.split() for line in table.splitlines())
    return tuple(
        Route(net=IPv4Network(f"{_number(row[1])}/{_number(row[7])}"), interface=row[0])
        for row in rows
        if len(row) > 7 and row[0] != HEADING and int(row[2], 16) == 0
    )


def interface_of(bind: str, routes: tuple[Route, ...]) -> str:
    """The interface whose net an address is in, the narrowest first; empty = none is known."""
    address = ip_address(bind)
    found = [route for route in routes if isinstance(address, IPv4Address) and address in route.net]
    return max(found, key=lambda route: route.net.prefixlen).interface if found else ""


def _number(word: str) -> IPv4Address:
    """The kernel writes addresses in the order of the machine's bytes: the first one last."""
    return IPv4Address(bytes.fromhex(word)[::-1])


ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}
"""Kinds of processors as kernels call them, and as images do."""


class Found(Value):
    """What one vendor's driver tells of its accelerators.

    Attributes:
        accelerators: In index order.
        troubles: What is there and cannot be used, and why.
        unified_memory: Whether they use the host's RAM as their memory.
        links: Indexes of those that fast links join, group by group; empty = none, or not reported.
    """

    accelerators: tuple[Accelerator, ...] = ()
    troubles: tuple[str, ...] = ()
    unified_memory: bool = False
    links: tuple[tuple[int, ...], ...] = ()


class HostFacts(Found):
    """A host at one moment.

    Attributes:
        ram_free: Bytes of RAM that are available without swapping.
        ports: TCP ports on which something listens.
        image_disk_free: Bytes that are free where Docker keeps images; None = not looked at.
        disk_free: Bytes that are free where models are kept; None = it was not looked at.
        models: What its model store has complete, as `source@revision`.
        helper_image: The helper's image as it is there; empty = it is not, or was not needed.
        docker: Version of its Docker; empty = it has none, or was not surveyed.
        machine: Its kind of processor as its kernel calls it.
        vendors: How many accelerators of whom hang on its PCI bus, by the names of `VENDORS`.
        tools: Drivers' tools that the probe's own image has.
    """

    cores: int
    ram_total: int
    ram_free: int
    ports: tuple[int, ...] = ()
    image_disk_free: int | None = None
    disk_free: int | None = None
    routes: tuple[Route, ...] = ()
    models: tuple[str, ...] = ()
    helper_image: str = ""
    docker: str = ""
    machine: str = ""
    vendors: dict[str, int] = {}
    nvidia_driver: bool = False
    tools: tuple[str, ...] = ()

    def with_trouble(self, trouble: str) -> HostFacts:
        """The same, with one more trouble."""
        return self.model_copy(update={"troubles": (*self.troubles, trouble)})
