"""Where a source may lead to, and where it may not."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from moorage.adapters.transfer.redirects import Guard, RedirectRefused, kind_of

HUB = "https://hub.example"
NAMES = {
    "hub.example": "93.184.216.34",
    "cdn.example": "93.184.216.35",
    "inner.example": "10.0.0.5",
    "other.example": "10.0.0.6",
    "local.example": "127.0.0.1",
    "metadata.example": "169.254.169.254",
}


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Names that stand for one address each; others stand for themselves."""
    known = dict(NAMES)

    def resolve(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", (known.get(host, host.strip("[]")), port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("93.184.216.34", "public"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("100.64.0.1", "private"),
        ("127.8.8.8", "loopback"),
        ("0.0.0.0", "loopback"),
        ("169.254.169.254", "link-local"),
        ("224.0.0.1", "no"),
        ("2606:2800:220:1::1", "public"),
        ("::1", "loopback"),
        ("::", "loopback"),
        ("fe80::1%eth0", "link-local"),
        ("fd00:ec2::254", "private"),
        ("::ffff:169.254.169.254", "link-local"),
        ("::ffff:127.0.0.1", "loopback"),
        ("2002:7f00:1::", "loopback"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
    ],
)
def test_the_kind_of_an_address_is_told(address: str, kind: str) -> None:
    assert kind_of(address) == kind


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (HUB, "https://cdn.example/x"),
        (HUB, "https://93.184.216.40/x"),
        ("http://hub.example", "http://hub.example:8080/x"),
        ("http://inner.example", "https://other.example/x"),
        ("http://inner.example", "https://cdn.example/x"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:9090/x"),
        ("http://local.example", "https://127.0.0.1/x"),
        ("http://local.example", "https://inner.example/x"),
        ("http://169.254.169.254", "http://169.254.169.254/y"),
    ],
)
def test_where_a_source_may_lead(source: str, target: str) -> None:
    assert follow(Guard(source), target)


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (HUB, "http://cdn.example/x", "which is not https"),
        (HUB, "http://169.254.169.254/latest/meta-data", "which is not https"),
        (HUB, "ftp://cdn.example/x", "which is not https"),
        (HUB, "ftp://hub.example/x", "which is not https"),
        (HUB, "file:///etc/passwd", "which is not https"),
        (HUB, "https://169.254.169.254/latest", "169.254.169.254, a link-local address"),
        (HUB, "https://[::ffff:169.254.169.254]/", "a link-local address"),
        (HUB, "https://127.0.0.1:2375/x", "127.0.0.1, a loopback address"),
        (HUB, "https://[::1]/x", "::1, a loopback address"),
        (HUB, "https://metadata.example/", "metadata.example (169.254.169.254), a link-local"),
        (HUB, "https://local.example/", "local.example (127.0.0.1), a loopback address"),
        (HUB, "https://inner.example/", "inner.example (10.0.0.5), a private address"),
        (HUB, "https://2130706433/", "a loopback address"),
        ("http://inner.example", "https://local.example/", "a loopback address"),
        ("http://inner.example", "https://metadata.example/", "a link-local address"),
        ("http://127.0.0.1:8080", "https://169.254.169.254/", "a link-local address"),
    ],
)
def test_where_a_source_may_not_lead(
    names: dict[str, str], source: str, target: str, words: str
) -> None:
    names["2130706433"] = "127.0.0.1"  # as the resolver of the system reads it
    with pytest.raises(RedirectRefused) as refused:
        follow(Guard(source), target)
    assert words in str(refused.value)


def test_a_name_that_stands_for_another_address_later_does_not_pass(
    names: dict[str, str],
) -> None:
    guard = Guard(HUB)
    assert guard.addresses("hub.example", 443) == ["93.184.216.34"]
    names["hub.example"] = "127.0.0.1"
    with pytest.raises(RedirectRefused, match="loopback"):
        guard.addresses("hub.example", 443)


def test_one_bad_address_of_several_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(0, 0, 0, "", (one, 443)) for one in ("93.184.216.34", "127.0.0.1")]
    mixed: Callable[..., Any] = lambda *_, **__: both  # noqa: E731
    guard = Guard(HUB)
    guard.addresses("hub.example", 443)
    monkeypatch.setattr(socket, "getaddrinfo", mixed)
    with pytest.raises(RedirectRefused):
        guard.addresses("cdn.example", 443)


def follow(guard: Guard, url: str) -> list[str]:
    """The addresses that a client connects to, after a redirect was checked."""
    guard.require_url(url)
    host = urlsplit(url).hostname or ""
    return guard.addresses(host, 443)
