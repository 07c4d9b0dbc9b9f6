"""Which redirects of a source are followed; standard library only.

A redirect leads to https, or to the source's own host. It never leads further inside than the
source itself is: not to this machine, nor to its network, nor to the services of a cloud. The
address that is checked is the one that is connected to, whatever a name stands for later.
"""

import ipaddress
import socket
import urllib.parse

GLOBAL, PRIVATE, LOOPBACK, LINK_LOCAL, NONE = "public", "private", "loopback", "link-local", "no"
MAY_LEAD_TO = {
    GLOBAL: {GLOBAL},
    PRIVATE: {GLOBAL, PRIVATE},
    LOOPBACK: {GLOBAL, PRIVATE, LOOPBACK},
    LINK_LOCAL: {GLOBAL, LINK_LOCAL},
    NONE: {GLOBAL},
}
"""By the kind of a source's own address, the kinds of those that it may lead to."""

NAT64 = ipaddress.ip_network("64:ff9b::/96")


class RedirectRefused(OSError):
    """A source leads to where it must not. The message says where."""


class Guard:
    """What a source may lead to, given its configured URL."""

    def __init__(self, url: str) -> None:
        self._host = urllib.parse.urlsplit(url).hostname or ""
        self._kinds: set[str] = set()

    def require_url(self, url: str) -> None:
        """Raise `RedirectRefused` for a URL, as far as its name need not be resolved."""
        parts = urllib.parse.urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme != "https" and (parts.scheme != "http" or host != self._host):
            raise RedirectRefused(f"{self._host} leads to {_escape(url)}, which is not https")
        if host == self._host:
            return
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return  # a name, which is resolved later
        self._require(host, host)

    def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host, each of them checked.

        Raises:
            RedirectRefused: One of them is further inside than the source.
            OSError: The name stands for nothing.
        """
        found = _resolve(host, port)
        if host == self._host and not self._kinds:
            self._kinds = set(map(kind_of, found))
        for address in found:
            self._require(address, host)
        return found

    def _require(self, address: str, host: str) -> None:
        if not self._kinds:
            try:
                self._kinds = set(map(kind_of, _resolve(self._host, 0)))
            except OSError:  # behind a proxy no name may be known
                self._kinds = {GLOBAL}
        kind = kind_of(address)
        if any(kind in MAY_LEAD_TO[own] for own in self._kinds):
            return
        named = host if host == address else f"{host} ({address})"
        raise RedirectRefused(f"{self._host} leads to {_escape(named)}, a {kind} address")


def kind_of(address: str) -> str:
    """What kind of place an address is: `public`, `private`, `loopback`, `link-local` or `no`."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if found in NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        found = inner or found
    if found.is_loopback or found.is_unspecified:
        return LOOPBACK
    if found.is_link_local:
        return LINK_LOCAL
    if found.is_multicast:
        return NONE
    return GLOBAL if found.is_global else PRIVATE


def _resolve(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _escape(text: str) -> str:
    return ascii(text[:200])[1:-1]
