"""Lending a model: to who has the token, in parts, and only as long as somebody asks."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from moorage.adapters.transfer import bundle
from moorage.adapters.transfer import lending_program as lend

DATA = os.urandom(300_000)
TOKEN = {"Authorization": "Bearer a-token"}


@dataclass
class Lender:
    process: subprocess.Popen[str]
    report: dict[str, Any]

    def get(self, name: str, **headers: str) -> httpx.Response:
        url = f"http://127.0.0.1:{self.report['port']}/{name}"
        return httpx.get(url, headers=TOKEN | headers)


def start(folder: Path, **changes: Any) -> Lender:
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", bundle(lend)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    content = {"folder": str(folder), "files": ["a.bin", "more/b c.bin"], "bind": "127.0.0.1"}
    order = content | {"ports": [0], "token": "a-token", "idle": 60} | changes
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    return Lender(process, json.loads(process.stdout.readline()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.bin").write_bytes(DATA)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b c.bin").write_bytes(b"")
    (tmp_path / "secret").write_bytes(b"not of the model")
    return tmp_path


@pytest.fixture
def lender(folder: Path) -> Iterator[Lender]:
    lender = start(folder)
    yield lender
    lender.process.kill()
    lender.process.wait()


def test_files_are_sent_whole_and_in_part(lender: Lender) -> None:
    whole = lender.get("a.bin")
    assert (whole.status_code, whole.content) == (200, DATA)
    part = lender.get("a.bin", Range="bytes=299990-")
    assert (part.status_code, part.content) == (206, DATA[-10:])
    assert part.headers["content-range"] == "bytes 299990-299999/300000"
    piece = lender.get("a.bin", Range="bytes=100-199")
    assert (piece.content, piece.headers["content-length"]) == (DATA[100:200], "100")
    assert piece.headers["content-range"] == "bytes 100-199/300000"
    beyond = lender.get("a.bin", Range="bytes=299990-999999")
    assert (beyond.content, beyond.headers["content-length"]) == (DATA[-10:], "10")
    assert lender.get("more/b%20c.bin", Range="bytes=0-").content == b""


@pytest.mark.parametrize(
    ("name", "headers", "status"),
    [
        ("a.bin", {"Authorization": "Bearer another"}, 401),
        ("a.bin", {"Authorization": ""}, 401),
        ("secret", {}, 404),
        ("..%2fsecret", {}, 404),
        ("a.bin", {"Range": "bytes=300001-"}, 416),
    ],
)
def test_nothing_else_is_sent(
    lender: Lender, name: str, headers: dict[str, str], status: int
) -> None:
    answer = lender.get(name, **headers)
    assert (answer.status_code, answer.content) == (status, b"")


def test_a_file_that_is_gone_is_not_there(folder: Path, lender: Lender) -> None:
    (folder / "a.bin").unlink()
    assert lender.get("a.bin").status_code == 404


def test_the_first_free_port_is_taken(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with socket.create_server(("127.0.0.1", 0)) as other:
            free = other.getsockname()[1]
        lender = start(folder, ports=[port, free])
        assert lender.report == {"port": free}
        lender.process.kill()
        lender.process.wait()
        nothing = start(folder, ports=[port])
        assert "trouble" in nothing.report
        assert nothing.process.wait(60) == 0


def test_it_ends_when_nobody_asks(folder: Path) -> None:
    assert start(folder, idle=0).process.wait(20) == 0


def test_no_name_service_is_asked_who_listens(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's own server asks for the name of its address: half a minute where DNS is broken."""
    lookups: list[str] = []
    monkeypatch.setattr(socket, "getfqdn", lookups.append)
    order = {"folder": str(folder), "files": [], "bind": "127.0.0.1", "token": "t", "idle": 60}
    with lend.LendingServer(order, 0) as door:
        assert door.server_address[1]
    assert lookups == []
