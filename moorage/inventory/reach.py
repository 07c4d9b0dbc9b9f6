"""What a user writes about the way to a host: SSH and TLS."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from pydantic import Field

from moorage.common.input_value import InputValue
from moorage.inventory.access import LOCAL, Access
from moorage.spec import FilePath, SecretName
from moorage.spec.safe import stays_below

ADDRESS_PATTERN = (
    r"^(local|unix:///[\w./+@-]+|ssh://([A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9][\w.-]*(:\d{1,5})?"
    r"(/[\w./+-]+)?|tcp://([A-Za-z0-9][\w.-]*|\[[0-9a-fA-F:]+\]):\d{1,5})$"
)
ADDRESS_IN_WORDS = (
    "local, unix:///path/to/docker.sock, ssh://user@host (with :port and /path/to/docker.sock where"
    " they are not the usual ones) or tcp://host:2376"
)


class SshWay(InputValue):
    """How SSH logs in, beyond what its own configuration on this machine says."""

    key: SecretName | None = Field(
        None,
        description="Name of the secret that holds the private key. Empty = the keys of the SSH"
        " agent, and those that `~/.ssh/config` names.",
    )
    known_hosts: FilePath | None = Field(
        None,
        description="File with the public keys of hosts. Empty = `~/.ssh/known_hosts`. A host that"
        " is not in it is refused.",
    )


class TlsWay(InputValue):
    """How both sides prove who they are over TCP."""

    certificates: FilePath = Field(
        description="Directory with `ca.pem`, `cert.pem` and `key.pem`, as Docker's own clients"
        " want it.",
    )


def access_of(address: str, ssh: SshWay | None, tls: TlsWay | None) -> Access:
    """The way to a host, put together.

    Raises:
        ValueError: When the parts do not belong together.
    """
    way = Access(
        address=address,
        key=(ssh and ssh.key) or "",
        known_hosts=(ssh and ssh.known_hosts) or "",
        certificates=tls.certificates if tls else "",
    )
    stays_below(urlsplit(address).path or "/")
    if way.scheme != LOCAL and (way.port or 1) < 1:
        raise ValueError("there is no port 0")
    if ssh and way.scheme != "ssh":
        raise ValueError(f"ssh says how ssh:// logs in; the address is {address}")
    if tls and way.scheme != "tcp":
        raise ValueError(f"tls is for tcp://; the address is {address}")
    if way.scheme == "tcp" and not tls and not _is_loopback(way.machine):
        raise ValueError(
            "tcp:// needs tls: whoever reaches a Docker daemon without it is root there"
        )
    return way


def others_can_reach(bind: str, access: Access) -> bool:
    """Whether engines that listen there can be asked from here."""
    return not access.is_remote or not _is_loopback(bind)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
