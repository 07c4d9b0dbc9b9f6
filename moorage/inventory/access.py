"""How to reach a Docker daemon or Ray dashboard, as one line of text without secrets."""

import ipaddress
import re
from functools import lru_cache
from urllib.parse import parse_qs, urlencode, urlsplit

from pydantic import Field

from moorage.common.values import InputValue, Value
from moorage.spec import FilePath, SecretName
from moorage.spec.patterns import check_path

LOCAL = "local"
DOCKER_SOCKET = "/var/run/docker.sock"
PORT = re.compile(r":\d+$")
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Loopback address by the wildcard address of the same family."""


class Access(Value):
    """How to reach one Docker daemon, or the dashboard of one Ray cluster.

    Attributes:
        address: `local`, `unix:///socket`, `ssh://[user@]host[:port][/socket]`,
            `tcp://host:port`, or the base URL of a dashboard.
        key: Name of the secret with the private SSH key; empty = the agent's keys, and those that
            the SSH configuration names.
        known_hosts: File with the hosts' public SSH keys; empty = the user's own.
        certificates: Directory with `ca.pem`, `cert.pem` and `key.pem`; empty = no TLS.
        token: Name of the secret with a dashboard's token; empty = the dashboard needs none.
    """

    address: str
    key: str = ""
    known_hosts: str = ""
    certificates: str = ""
    token: str = ""

    @property
    def url(self) -> str:
        """Address and other fields in one line, the form in plans, workloads and the ledger."""
        more = self.model_dump(exclude={"address"}, exclude_defaults=True)
        return f"{self.address}?{urlencode(more)}" if more else self.address

    @property
    def scheme(self) -> str:
        """`local`, `unix`, `ssh` or `tcp`."""
        return self.address.partition("://")[0]

    @property
    def machine(self) -> str:
        """The machine that the address names; `local` for every local socket."""
        return machine_of(self.address)

    @property
    def is_remote(self) -> bool:
        """Whether the address names another machine."""
        return self.machine != LOCAL

    @property
    def login(self) -> str:
        """`user@host` or `host`, for SSH; case is kept, since SSH's configuration needs it."""
        parts = urlsplit(self.address)
        host = _without_port(parts.netloc.rpartition("@")[2])
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
    """Parse the line that `Access.url` returns."""
    address, _, more = url.partition("?")
    return Access(address=address, **{name: values[0] for name, values in parse_qs(more).items()})


@lru_cache(maxsize=32_768)
def machine_of(url: str) -> str:
    """The machine that a line of `Access.url` names, without validating the line again."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    if scheme in (LOCAL, "unix"):
        return LOCAL
    return _without_port(rest.partition("/")[0].rpartition("@")[2]).lower()


def current_address(recorded: str, now: str) -> str:
    """How the daemon of a recorded address is reached, while its host is reached at `now`.

    A machine of another name is the same host that has moved. On the same machine another socket,
    or port over TCP, is another daemon, which is still reached as recorded.
    """
    same = machine_of(recorded) != machine_of(now) or _daemon_of(recorded) == _daemon_of(now)
    return now if same else recorded


def _daemon_of(url: str) -> tuple[str, str]:
    """The scheme of an address, and what tells apart the daemons of one machine."""
    address = urlsplit(url.partition("?")[0])
    if address.scheme == "tcp":
        return address.scheme, str(address.port)
    default = DOCKER_SOCKET if address.scheme == "ssh" else ""
    return address.scheme, address.path or default


def _without_port(authority: str) -> str:
    return PORT.sub("", authority).strip("[]")


ADDRESS_PATTERN = (
    r"^(local|unix:///[\w./+@-]+|ssh://([A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9][\w.-]*(:\d{1,5})?"
    r"(/[\w./+-]+)?|tcp://([A-Za-z0-9][\w.-]*|\[[0-9a-fA-F:]+\]):\d{1,5})$"
)
ADDRESS_IN_WORDS = (
    "local, unix:///path/to/docker.sock, ssh://user@host (with :port and /path/to/docker.sock where"
    " they are not the usual ones) or tcp://host:2376"
)


class SshWay(InputValue):
    """The login over SSH, in addition to SSH's own configuration on this machine."""

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
    """The certificates with which both sides prove their identity over TCP."""

    certificates: FilePath = Field(
        description="Directory with `ca.pem`, `cert.pem` and `key.pem`, as for Docker's own"
        " clients."
    )


def access_of(address: str, ssh: SshWay | None, tls: TlsWay | None) -> Access:
    """How to reach a host, from the fields of the fleet file.

    Raises:
        ValueError: When the fields contradict each other.
    """
    way = Access(
        address=address,
        key=(ssh and ssh.key) or "",
        known_hosts=(ssh and ssh.known_hosts) or "",
        certificates=tls.certificates if tls else "",
    )
    check_path(urlsplit(address).path or "/")
    if way.scheme != LOCAL and (way.port or 1) < 1:
        raise ValueError("there is no port 0")
    if ssh and way.scheme != "ssh":
        raise ValueError(f"ssh says how ssh:// logs in; the address is {address}")
    if tls and way.scheme != "tcp":
        raise ValueError(f"tls is for tcp://; the address is {address}")
    if way.scheme == "tcp" and not tls and not is_loopback(way.machine):
        raise ValueError(
            "tcp:// needs tls: whoever reaches a Docker daemon without it is root there"
        )
    return way


def is_loopback(host: str) -> bool:
    """Whether only its own machine reaches an address; brackets around IPv6 are accepted."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
