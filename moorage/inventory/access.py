"""How the Docker daemon of a host is reached; one line of text that holds no secret."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlencode, urlsplit

from moorage.common.values import Value

LOCAL = "local"
DOCKER_SOCKET = "/var/run/docker.sock"
PORT = re.compile(r":\d+$")


class Access(Value):
    """The way to one daemon.

    Attributes:
        address: `local`, `unix:///socket`, `ssh://[user@]host[:port][/socket]` or
            `tcp://host:port`.
        key: Name of the secret with the private SSH key; empty = the agent's keys, and what the
            SSH configuration names.
        known_hosts: File with the hosts' public SSH keys; empty = the user's own.
        certificates: Directory with `ca.pem`, `cert.pem` and `key.pem`; empty = no TLS.
    """

    address: str
    key: str = ""
    known_hosts: str = ""
    certificates: str = ""

    @property
    def url(self) -> str:
        """All of it in one line, as plans, workloads and the ledger carry it."""
        more = self.model_dump(exclude={"address"}, exclude_defaults=True)
        return f"{self.address}?{urlencode(more)}" if more else self.address

    @property
    def scheme(self) -> str:
        """`local`, `unix`, `ssh` or `tcp`."""
        return self.address.partition("://")[0]

    @property
    def machine(self) -> str:
        """What machine it is, as far as the address tells: all local sockets are of this one."""
        return LOCAL if self.scheme in (LOCAL, "unix") else (urlsplit(self.address).hostname or "")

    @property
    def is_remote(self) -> bool:
        """Whether it is another machine, as far as the address tells."""
        return self.machine != LOCAL

    @property
    def login(self) -> str:
        """`user@host` or `host`, for SSH, whose configuration tells large letters from small."""
        parts = urlsplit(self.address)
        host = PORT.sub("", parts.netloc.rpartition("@")[2]).strip("[]")
        return f"{parts.username}@{host}" if parts.username else host

    @property
    def port(self) -> int | None:
        """The port that the address names."""
        return urlsplit(self.address).port

    @property
    def socket(self) -> str:
        """The daemon's socket on its machine, for SSH."""
        return urlsplit(self.address).path or DOCKER_SOCKET


def parse_access(url: str) -> Access:
    """Read the line that `Access.url` writes."""
    address, _, more = url.partition("?")
    return Access(address=address, **{name: values[0] for name, values in parse_qs(more).items()})
