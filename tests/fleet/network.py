"""Network namespaces on a bridge: what makes one machine look like several."""

from __future__ import annotations

import os
from itertools import chain

from tests.fleet.commands import run

FIRST_NET = 16


class Network:
    """A bridge with an address of its own, and the hosts that hang on it.

    Several fleets may live at a time: each takes a free net `10.77.N.0/24`.
    """

    def __init__(self) -> None:
        self.number = _take_bridge()
        self.name = f"mfl{self.number}"
        self.address = f"10.77.{self.number}.254"
        run("ip", "addr", "add", f"{self.address}/24", "dev", self.name)
        run("ip", "link", "set", self.name, "up")
        # Docker on this machine drops what is forwarded.
        run("iptables", "-I", "FORWARD", "-i", self.name, "-o", self.name, "-j", "ACCEPT")

    @property
    def net(self) -> str:
        """All addresses of the fleet."""
        return f"10.77.{self.number}.0/24"

    def link(self, position: int) -> Link:
        """The place of a new host; positions count from 1."""
        return Link(self, position)

    def close(self) -> None:
        """Take the bridge away."""
        run(
            *("iptables", "-D", "FORWARD", "-i", self.name, "-o", self.name, "-j", "ACCEPT"),
            check=False,
        )
        run("ip", "link", "del", self.name, check=False)


class Link:
    """A namespace with one cable to the bridge.

    Attributes:
        namespace: Its name.
        address: Its address.
    """

    def __init__(self, network: Network, position: int) -> None:
        self.namespace = f"{network.name}h{position}"
        self.address = f"10.77.{network.number}.{position}"
        run("ip", "netns", "add", self.namespace)
        run(
            *("ip", "link", "add", self.namespace, "type", "veth"),
            *("peer", "name", "eth0", "netns", self.namespace),
        )
        run("ip", "link", "set", self.namespace, "master", network.name, "up")
        inside = ("ip", "-n", self.namespace)
        run(*inside, "addr", "add", f"{self.address}/24", "dev", "eth0")
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "link", "set", "eth0", "up")
        run(*inside, "route", "add", "default", "via", network.address)

    @property
    def entering(self) -> tuple[str, ...]:
        """Words before a command that runs there. `ip netns exec` would hide the cgroups."""
        return ("nsenter", f"--net=/run/netns/{self.namespace}")

    def cut(self) -> None:
        """Pull the cable."""
        run("ip", "link", "set", self.namespace, "down")

    def mend(self) -> None:
        """Plug it in again, and wait until it carries: ARP remembers for a while who was away."""
        run("ip", "link", "set", self.namespace, "up")
        run("ip", "neigh", "flush", "to", self.address)
        inside = ("ip", "-n", self.namespace)
        run(*inside, "neigh", "flush", "dev", "eth0")

    def close(self) -> None:
        """Take the namespace away."""
        run("ip", "link", "del", self.namespace, check=False)
        run("ip", "netns", "del", self.namespace, check=False)


def _take_bridge() -> int:
    """Making a bridge is what takes a number, so that two fleets cannot have the same."""
    tried = range(FIRST_NET + os.getpid() % 100, 250)
    for number in chain(tried, range(FIRST_NET, tried.start)):
        if run("ip", "link", "add", f"mfl{number}", "type", "bridge", check=False).returncode == 0:
            return number
    raise RuntimeError("all nets are taken: `ip link | grep mfl`")
