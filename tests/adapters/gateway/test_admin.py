"""Questions to an Envoy that somebody took over: its answers are limited."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.envoy_folder import LocalFolder
from moorage.common.failures import Failure
from moorage.gateway.envoy import ADMIN_SOCKET


@contextmanager
def answering(folder: Path, piece: bytes, pause: float) -> Iterator[Admin]:
    """An Envoy whose answers never end."""
    path, ended = folder / ADMIN_SOCKET, threading.Event()
    path.parent.mkdir()

    def answer(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while not ended.wait(pause):
                connection.sendall(piece)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=lambda: answer(listener.accept()[0]))
        thread.start()
        yield Admin(LocalFolder(folder).admin())
        ended.set()
        thread.join()


@pytest.mark.parametrize(
    "question",
    [Admin.traffic, Admin.open_requests, Admin.reopen_log],
    ids=lambda one: str(one.__name__),
)
def test_an_answer_without_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: Callable[[Admin], object]
) -> None:
    monkeypatch.setattr("moorage.adapters.gateway.admin.MOST_BYTES", 2**20)
    with (
        answering(tmp_path, b"x" * 2**16, 0) as admin,
        pytest.raises(Failure, match=r"more than 1\.0 MiB"),
    ):
        question(admin)


def test_an_answer_that_trickles_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.adapters.gateway.admin.WHOLE_SECONDS", 0.3)
    began = time.monotonic()
    with answering(tmp_path, b"x", 0.02) as admin:
        assert not admin.is_ready()
    assert time.monotonic() - began < 2
