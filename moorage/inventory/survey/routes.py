"""Which network interface of a host an address is on, by its table of routes."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, ip_address

from moorage.common.values import Value

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
