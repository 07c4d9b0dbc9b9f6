"""The address at which containers reach this machine."""

from __future__ import annotations

from ipaddress import ip_network

import docker


def bridge_address() -> str:
    """This machine's address on Docker's default network: the first of the network, which a daemon
    reports only from its second start on."""
    options = docker.from_env().networks.get("bridge").attrs["IPAM"]["Config"][0]
    return str(options.get("Gateway") or ip_network(options["Subnet"])[1])
