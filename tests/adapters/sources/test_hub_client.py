"""A file comes whole or not at all, whatever the connection does."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event
from typing import ClassVar, NoReturn

import pytest

from moorage.adapters.sources.hub_client import HubClient
from moorage.adapters.transfer import prefetch
from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile
from tests.adapters.sources.conftest import REPO
from tests.http_server import QuietHandler, serving
from tests.hub.faults import Fault
from tests.hub.server import Hub
from tests.hub.tiny import pattern

NAME = "big.safetensors"
DATA = pattern(200_000)
FILE = ModelFile(name=NAME, size=len(DATA), sha256=hashlib.sha256(DATA).hexdigest())


class Proxy(QuietHandler):
    """One that leads nowhere."""

    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_CONNECT(self) -> None:
        self.asked.append((self.path, self.headers["Proxy-Authorization"]))
        self.send_error(403)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub({REPO: {NAME: DATA, "empty.py": b""}}) as hub:
        yield hub


@pytest.fixture
def commit(hub: Hub) -> str:
    return hub.branches[REPO]["main"]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "folder" / NAME


def fetch(hub: Hub, commit: str, target: Path, *, attempts: int = 1) -> None:
    client = HubClient(REPO, hub.url, timeout=5, waits=(0.0,) * (attempts - 1))
    client.fetch(commit, FILE, target, Event())


def ranges(hub: Hub) -> list[str | None]:
    return [seen.range for seen in hub.requests_for(NAME)]


def test_a_hub_whose_name_does_not_resolve_is_named_and_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each answer of a resolver may take long."""
    asked = list[object]()

    def resolve(host: object, *_: object, **__: object) -> NoReturn:
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(Failure) as caught:
        HubClient(REPO, "http://hub.invalid", waits=(0.0,) * 4).list_files("")
    assert caught.value.cause is Cause.HUB_UNAVAILABLE
    assert "Name or service not known (hub.invalid)" in caught.value.detail
    assert len(asked) == 1


@pytest.mark.parametrize("reset", [False, True], ids=["ended", "reset"])
def test_after_a_cut_only_the_rest_is_asked_for(
    hub: Hub, commit: str, target: Path, reset: bool
) -> None:
    hub.fail(NAME, Fault(cut_after=81_920, reset=reset, times=1))
    fetch(hub, commit, target, attempts=2)
    assert target.read_bytes() == DATA
    first, second = ranges(hub)
    assert (first, str(second).partition("-")[2]) == ("bytes=0-199999", "199999")
    assert reset or (second, hub.sent(NAME)) == ("bytes=81920-199999", len(DATA))


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(
    hub: Hub, commit: str, target: Path
) -> None:
    hub.fail(NAME, Fault(cut_after=81_920, times=1))
    with pytest.raises(Failure) as caught:
        fetch(hub, commit, target)
    assert caught.value.cause is Cause.HUB_UNAVAILABLE
    assert target.read_bytes() == DATA[:81_920]
    fetch(hub, commit, target)
    assert target.read_bytes() == DATA
    assert hub.sent(NAME) == len(DATA)


def test_a_leftover_longer_than_the_file_is_thrown_away(
    hub: Hub, commit: str, target: Path
) -> None:
    target.parent.mkdir()
    target.write_bytes(DATA + b"more")
    fetch(hub, commit, target)
    assert target.read_bytes() == DATA


def test_a_very_large_file_comes_in_pieces(
    hub: Hub, commit: str, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "LONGEST", 90_000)
    fetch(hub, commit, target)
    assert target.read_bytes() == DATA
    assert ranges(hub) == ["bytes=0-89999", "bytes=90000-179999", "bytes=180000-199999"]


def test_an_empty_file_is_not_asked_for(hub: Hub, commit: str, target: Path) -> None:
    file = ModelFile(name="empty.py", size=0)
    HubClient(REPO, hub.url).fetch(commit, file, target, Event())
    assert (target.read_bytes(), hub.requests) == (b"", [])


@pytest.mark.parametrize("content", [DATA[:-1], DATA + b"more", b""], ids=len)
@pytest.mark.parametrize("ignore_range", [False, True])
def test_a_file_of_another_size_is_corrupt(
    hub: Hub, commit: str, target: Path, content: bytes, ignore_range: bool
) -> None:
    hub.fail(NAME, Fault(content=content, ignore_range=ignore_range))
    with pytest.raises(Failure) as caught:
        fetch(hub, commit, target, attempts=3)
    assert caught.value.cause is Cause.DOWNLOAD_CORRUPT
    assert NAME in caught.value.detail
    assert len(ranges(hub)) == 1


def test_a_resumed_file_that_the_server_cut_short_is_corrupt(
    hub: Hub, commit: str, target: Path
) -> None:
    target.parent.mkdir()
    target.write_bytes(DATA[:150_000])
    hub.fail(NAME, Fault(content=DATA[:100_000]))
    with pytest.raises(Failure, match="shorter than the hub announced") as caught:
        fetch(hub, commit, target)
    assert caught.value.cause is Cause.DOWNLOAD_CORRUPT


def test_a_stopped_download_ends_and_keeps_what_it_has(hub: Hub, commit: str, target: Path) -> None:
    stopped = Event()
    stopped.set()
    with pytest.raises(Failure) as caught:
        HubClient(REPO, hub.url).fetch(commit, FILE, target, stopped)
    assert caught.value.cause is Cause.INTERRUPTED


@pytest.mark.parametrize("fault", [None, Fault(ignore_range=True)], ids=["range", "all"])
def test_a_range_is_read_even_if_the_server_sends_all(
    hub: Hub, commit: str, fault: Fault | None
) -> None:
    hub.fail(NAME, fault)
    read = HubClient(REPO, hub.url).read
    assert read(commit, FILE, Event(), 0, 8) == DATA[:8]
    assert read(commit, FILE, Event(), 100_000, 100_100) == DATA[100_000:100_100]


def test_reading_a_header_stops_before_the_weights(hub: Hub, commit: str) -> None:
    hub.fail(NAME, Fault(ignore_range=True, pause=0.02))
    assert HubClient(REPO, hub.url).read(commit, FILE, Event(), 0, 8) == DATA[:8]
    assert hub.sent(NAME) < len(DATA) / 4


def test_a_file_too_short_for_the_range_is_corrupt(hub: Hub, commit: str) -> None:
    hub.fail(NAME, Fault(content=DATA[:50], ignore_range=True))
    with pytest.raises(Failure) as caught:
        HubClient(REPO, hub.url).read(commit, FILE, Event(), 0, 100)
    assert caught.value.cause is Cause.DOWNLOAD_CORRUPT


def test_a_hub_behind_a_proxy_is_asked_through_it(
    monkeypatch: pytest.MonkeyPatch, target: Path
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    client = HubClient(REPO, "https://hub.invalid", waits=())
    fetch = partial(client.fetch, "a" * 40, FILE, target, Event())
    with serving(Proxy) as port:
        for ask in (partial(client.list_files, ""), fetch):
            Proxy.asked.clear()
            monkeypatch.setenv("https_proxy", f"http://me:s3cret@127.0.0.1:{port}")
            with pytest.raises(Failure, match="403") as caught:
                ask()
            assert caught.value.cause is Cause.HUB_UNAVAILABLE
            assert Proxy.asked == [("hub.invalid:443", "Basic bWU6czNjcmV0")]
            monkeypatch.setenv("https_proxy", "http://me:s3cret/@proxy")
            with pytest.raises(Failure, match="HTTPS_PROXY holds no address") as caught:
                ask()
            assert "s3cret" not in caught.value.detail
