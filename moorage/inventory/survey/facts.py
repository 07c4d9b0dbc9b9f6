"""Facts about a host that the survey reads, and its network routes."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, ip_address
from typing import Self

from moorage.common.values import Value
from moorage.inventory.snapshot import Accelerator

HEADING = "Iface"


class Route(Value):
    """A network to which an interface is directly connected."""

    net: IPv4Network
    interface: str


def read_routes(table: str) -> tuple[Route, ...]:
    """The networks in `/proc/net/route` without a gateway; other lines are left out."""
    rows = (line.split() for line in table.splitlines())
    return tuple(
        Route(net=IPv4Network(f"{_number(row[1])}/{_number(row[7])}"), interface=row[0])
        for row in rows
        if len(row) > 7 and row[0] != HEADING and int(row[2], 16) == 0
    )


def interface_of(bind: str, routes: tuple[Route, ...]) -> str:
    """The interface whose network holds an address, the narrowest first; empty = none does."""
    address = ip_address(bind)
    found = [route for route in routes if isinstance(address, IPv4Address) and address in route.net]
    return max(found, key=lambda route: route.net.prefixlen).interface if found else ""


def _number(word: str) -> IPv4Address:
    """An address from its hex digits: the kernel writes them in the machine's byte order."""
    return IPv4Address(bytes.fromhex(word)[::-1])


ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}
"""Processor architectures: the name in images by the kernel's name."""


def is_wsl(kernel: str) -> bool:
    """Whether the release of a kernel is that of WSL, such as `5.15.153.1-microsoft-standard-WSL2`.

    Docker Desktop and the distributions of WSL share that kernel.
    """
    return "microsoft" in kernel.lower()


def is_jetson(kernel: str) -> bool:
    """Whether the release of a kernel is that of NVIDIA's Jetson, such as `5.15.148-tegra`."""
    return "tegra" in kernel.lower()


class Found(Value):
    """The accelerators that one vendor's driver reports.

    Attributes:
        accelerators: In index order.
        troubles: Accelerators that cannot be used, and why.
        hides_accelerators: Whether there are accelerators of which only a trouble tells.
        unified_memory: Whether they use the host's RAM as their memory.
        links: Indexes of accelerators that fast links join, by group; empty = none, or unknown.
    """

    accelerators: tuple[Accelerator, ...] = ()
    troubles: tuple[str, ...] = ()
    hides_accelerators: bool = False
    unified_memory: bool = False
    links: tuple[tuple[int, ...], ...] = ()

    def with_trouble(self, trouble: str) -> Self:
        """The same facts with one more trouble."""
        return self.model_copy(update={"troubles": (*self.troubles, trouble)})


class HostFacts(Found):
    """A host at one moment; fields that `HostSnapshot` has too are the same there.

    Attributes:
        ports: TCP ports on which something listens.
        helper_image: The helper's image on the host; empty = absent, or not needed.
        machine: Its processor architecture, under the kernel's name.
        kernel: Release of its kernel.
        vendors: Number of accelerators on its PCI bus, by the vendor's name in `VENDORS`.
        ascend_nodes: Each N of the device files `/dev/davinciN` of its Ascend chips, ascending.
        tools: Drivers' tools that are in the probe's image.
    """

    cores: int
    ram_total: int
    ram_free: int
    ports: tuple[int, ...] = ()
    image_disk_free: int | None = None
    disk_free: int | None = None
    routes: tuple[Route, ...] = ()
    models: tuple[str, ...] = ()
    begun: dict[str, int] = {}
    images: frozenset[str] = frozenset()
    helper_image: str = ""
    docker: str = ""
    machine: str = ""
    kernel: str = ""
    needs_nvidia_runtime: bool = False
    vendors: dict[str, int] = {}
    ascend_nodes: tuple[int, ...] = ()
    nvidia_driver: bool = False
    tools: tuple[str, ...] = ()
