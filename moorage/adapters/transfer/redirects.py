"""Rules for following the redirects of a source; standard library only.

A redirect must lead to https or to the source's own host. A public source must not lead to this
machine, its network or a cloud's internal services; a private source may lead to private addresses.
The checked address is the one that is connected to, whatever the name resolves to later.
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
"""Kinds of addresses that a source may lead to, by the kind of the source's own address."""

NAT64 = ipaddress.ip_network("64:ff9b::/96")


class RedirectRefused(OSError):
    """A source leads to a forbidden address, which the message names."""


class Guard:
    """Checks the redirects of a source, given its configured URL."""

    def __init__(self, url: str) -> None:
        self._host = urllib.parse.urlsplit(url).hostname or ""
        self._kinds: set[str] = set()

    def require_url(self, url: str) -> None:
        """Raise `RedirectRefused` for a forbidden URL; names are checked when they are resolved."""
        parts = urllib.parse.urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme != "https" and (parts.scheme != "http" or host != self._host):
            raise RedirectRefused(f"{self._host} leads to {_escape(url)}, which is not https")
        if host == self._host:
            return
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return  # a name, checked when it is resolved
        self._require(host, host)

    def addresses(self, host: str, port: int) -> list[str]:
        """Addresses of a host; raises `RedirectRefused` if the source may not lead to one of them.

        A name that cannot be resolved raises another `OSError`.
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
            except OSError:  # behind a proxy, names may not resolve
                self._kinds = {GLOBAL}
        kind = kind_of(address)
        if any(kind in MAY_LEAD_TO[own] for own in self._kinds):
            return
        named = host if host == address else f"{host} ({address})"
        raise RedirectRefused(f"{self._host} leads to {_escape(named)}, a {kind} address")


def kind_of(address: str) -> str:
    """Kind of an address: `public`, `private`, `loopback`, `link-local`, or `no` for multicast."""
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


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name or address."""
    try:
        return host == "localhost" or kind_of(host) == LOOPBACK
    except ValueError:
        return False


def _resolve(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _escape(text: str) -> str:
    return ascii(text[:200])[1:-1]
