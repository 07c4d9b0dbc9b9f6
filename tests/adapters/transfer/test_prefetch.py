"""A large file comes in ranges, several at once, and is whole whatever happens to one of them."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from moorage.adapters.transfer import prefetch
from moorage.adapters.transfer.checksum import File
from moorage.adapters.transfer.prefetch import Connections
from moorage.adapters.transfer.range_answer import Answer, DownloadError
from moorage.adapters.transfer.range_download import Download
from tests.hub.tiny import pattern

PIECE = 10_000
DATA = pattern(10 * PIECE)
FILE: File = {"name": "a", "size": len(DATA), "sha256": hashlib.sha256(DATA).hexdigest()}
WAIT_SECONDS = 10


@dataclass
class Server:
    """Answers requests for ranges.

    Attributes:
        faults: What goes wrong with the first request for a range, by its first byte: `cut` in its
            middle, `refused`, `all` of the file comes, or `more` than was asked for.
        together: How many requests have to be open before anything but heads is sent.
        fills_buffers: Whether it writes into the buffers that it is given.
        requests: First and last byte of each.
    """

    faults: dict[int, str] = field(default_factory=dict)
    together: int = 1
    fills_buffers: bool = False
    requests: list[tuple[int, int]] = field(default_factory=list)
    open: int = 0
    most: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def open_range(self, start: int, stop: int) -> Iterator[Answer]:
        with self.changed:
            self.requests.append((start, stop))
            self.open += 1
            self.most = max(self.most, self.open)
            self.changed.notify_all()
            fault = self.faults.pop(start, "")
        try:
            if fault == "refused":
                raise DownloadError("hub-unavailable", "no", transient=True)
            if fault == "all":
                yield Answer(200, {"content-length": str(len(DATA))}, partial(self._blocks, DATA))
                return
            last = len(DATA) - 1 if fault == "more" else stop - 1
            body = DATA[start : last + 1][: PIECE // 2 if fault == "cut" else None]
            headers = {"content-range": f"bytes {start}-{last}/{len(DATA)}"}
            yield Answer(206, headers, partial(self._blocks, body))
        finally:
            with self.changed:
                self.open -= 1

    def _blocks(self, data: bytes, into: memoryview | None) -> Iterator[bytes | memoryview]:
        with self.changed:
            assert self.changed.wait_for(lambda: self.most >= self.together, WAIT_SECONDS)
        for start in range(0, len(data), 3000):
            block = data[start : start + 3000]
            if into is None or not self.fills_buffers:
                yield block
            elif kept := into[start : start + len(block)]:
                kept[:] = block[: len(kept)]
                yield kept


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "PIECE", PIECE)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "a"


def download(server: Server, target: Path, connections: int) -> None:
    shared = Connections(connections)
    Download(
        FILE, str(target), server.open_range, Event(), waits=(0, 0, 0), connections=shared
    ).run()
    assert target.read_bytes() == DATA


def test_what_comes_next_is_fetched_by_spare_connections(target: Path) -> None:
    server = Server(together=4)
    download(server, target, 4)
    assert sorted(server.requests) == [(at, at + PIECE) for at in range(0, len(DATA), PIECE)]
    assert server.most == 4


def test_without_a_spare_connection_it_is_one_request(target: Path) -> None:
    server = Server()
    download(server, target, 1)
    assert server.requests == [(0, len(DATA))]


def test_connections_are_shared() -> None:
    """Two files of which each has its own connection leave one of three."""
    shared = Connections(3)
    with shared.own(), shared.own():
        buffer = shared.take()
        assert buffer is not None
        assert shared.take() is None
        shared.give_back()
        shared.reuse(buffer)
        assert shared.take() is buffer


@pytest.mark.parametrize("fills_buffers", [False, True])
@pytest.mark.parametrize("fault", ["cut", "refused", "all", "more"])
@pytest.mark.parametrize("at", [0, PIECE, 4 * PIECE])
def test_a_range_that_goes_wrong_costs_only_itself(
    target: Path, at: int, fault: str, fills_buffers: bool
) -> None:
    server = Server({at: fault}, fills_buffers=fills_buffers)
    download(server, target, 3)
    again = [start for start, _ in server.requests if at < start < at + PIECE]
    assert again == ([at + PIECE // 2] if fault == "cut" else [])
    assert len(server.requests) <= len(DATA) // PIECE + 1


def test_a_server_that_sends_all_is_asked_once(target: Path) -> None:
    server = Server({0: "all"})
    download(server, target, 4)
    assert server.requests == [(0, PIECE)]


def test_what_is_here_is_read_once_and_the_rest_is_fetched(target: Path) -> None:
    target.write_bytes(DATA[: PIECE + 1])
    server = Server()
    download(server, target, 3)
    assert min(server.requests)[0] == PIECE + 1
