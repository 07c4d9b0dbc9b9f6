"""The interface of an address, out of the kernel's own table."""

from __future__ import annotations

import pytest

from moorage.inventory.survey.facts import interface_of, read_routes

TABLE = """\
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	FE104D0A	0003	0	0	0	00000000	0	0	0
eth0	00104D0A	00000000	0001	0	0	0	00FFFFFF	0	0	0
ib0	0000A8C0	00000000	0001	0	0	0	0000FFFF	0	0	0
ib1	0001A8C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
cut off
"""


@pytest.mark.parametrize(
    ("bind", "interface"),
    [
        ("10.77.16.2", "eth0"),
        ("192.168.7.1", "ib0"),
        # the narrowest net counts
        ("192.168.1.9", "ib1"),
        # what only a gateway leads to is nobody's own
        ("8.8.8.8", ""),
        ("fd00::7", ""),
    ],
)
def test_an_address_is_on_the_interface_whose_net_it_is_in(bind: str, interface: str) -> None:
    assert interface_of(bind, read_routes(TABLE)) == interface


@pytest.mark.parametrize("table", ["", "cat: can't open '/proc/net/route': No such file"])
def test_a_host_that_tells_no_routes_has_no_interface(table: str) -> None:
    assert read_routes(table) == ()
