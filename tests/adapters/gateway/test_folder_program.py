"""The program on Envoy's host, and somebody who took Envoy over."""

from __future__ import annotations

import io
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.gateway import folder_program as program
from moorage.gateway.envoy import ADMIN_SOCKET, OWN_FOLDER
from moorage.gateway.programs import HOST_FOLDER


def test_it_knows_the_folder_as_envoy_does() -> None:
    assert (program.ROOT, program.OWN, program.ADMIN) == (HOST_FOLDER, OWN_FOLDER, ADMIN_SOCKET)


def ask(folder: Path, do: str, body: bytes = b"", **fields: Any) -> tuple[dict[str, Any], bytes]:
    return program.answer(str(folder), {"do": do, "size": len(body), **fields}, body)


def test_questions_are_answered_one_after_the_other(tmp_path: Path) -> None:
    question = {"do": "write", "path": "config/routes.json", "size": 2}
    read = {"do": "read", "path": "config/routes.json", "start": 0, "stop": 9, "size": 0}
    questions = f"{json.dumps(question)}\n{{}}{json.dumps(read)}\n".encode()
    answered = io.BytesIO()
    program.serve(str(tmp_path), io.BytesIO(questions), answered)
    assert answered.getvalue() == b'{"size": 0}\n{"size": 2}\n{}'


def test_a_file_is_its_users_alone_and_replaces_the_one_before(tmp_path: Path) -> None:
    for text in (b"one", b"two"):
        assert ask(tmp_path, "write", text, path="keys/tiny.json") == ({}, b"")
    file = tmp_path / "keys" / "tiny.json"
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"two", 0o600)
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert list(file.parent.iterdir()) == [file]


def test_a_file_that_is_not_there_is_absent(tmp_path: Path) -> None:
    assert ask(tmp_path, "state", path="envoy/access.log")[0]["absent"]
    assert ask(tmp_path, "remove", path="envoy/access.log") == ({}, b"")


@pytest.mark.parametrize("path", ["/etc/passwd", "../other", "config/../../other"])
def test_no_path_leads_out_of_the_folder(tmp_path: Path, path: str) -> None:
    for header, body in (
        ask(tmp_path, "write", b"x", path=path),
        ask(tmp_path, "read", path=path, start=0, stop=9),
        ask(tmp_path, "rename", path="config", target=path),
        ask(tmp_path, "remove", path=path),
    ):
        assert ("leads out" in header["trouble"], body) == (True, b"")


def test_a_link_or_a_pipe_in_place_of_the_log_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-engine")
    (tmp_path / "link").symlink_to(tmp_path / "key")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        header, body = ask(tmp_path, "read", path=name, start=0, stop=9)
        assert (bool(header["trouble"]), body) == (True, b"")


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Path]:
    """An Envoy whose answers never end."""
    (tmp_path / "envoy").mkdir()
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(tmp_path / ADMIN_SOCKET))
        listener.listen()

        def answer() -> None:
            with suppress(OSError), listener.accept()[0] as connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    connection.sendall(b"x" * 65_536)

        thread = threading.Thread(target=answer)
        thread.start()
        yield tmp_path
        thread.join()


def test_an_answer_of_envoy_without_end_is_given_up(endless: Path) -> None:
    header, body = ask(endless, "ask", method="GET", target="/stats", most=2**20)
    assert ("more than 1048576 bytes" in header["trouble"], body) == (True, b"")


def test_an_envoy_that_does_not_run_is_a_trouble(tmp_path: Path) -> None:
    assert "trouble" in ask(tmp_path, "ask", method="GET", target="/ready", most=9)[0]
