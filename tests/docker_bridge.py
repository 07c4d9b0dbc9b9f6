"""Where containers see this machine."""

from __future__ import annotations

from ipaddress import ip_network

import docker


def bridge_address() -> str:
    """This machine's address on Docker's own network; a daemon tells it only from its second start
    on, and it is the first one of the network."""
    options = docker.from_env().networks.get("bridge").attrs["IPAM"]["Config"][0]
    return str(options.get("Gateway") or ip_network(options["Subnet"])[1])
