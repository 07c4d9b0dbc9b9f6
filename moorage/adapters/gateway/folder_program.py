"""The program that works on the files of a gateway on Envoy's host; it runs in a container there.

It needs Python's standard library alone. It reads questions, each a line of JSON with `do` and
`size`, and then so many bytes; each gets an answer in the same form. Attackers are callers and
engines that took Envoy over: they can write into Envoy's own folder and answer in its place, so
what is read there has limits of bytes and time, and is no link and no pipe.
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, BinaryIO

ROOT = "/moorage"
OWN = "envoy"
ADMIN = "envoy/admin"

IDLE_SECONDS = 120
"""It ends when it is asked nothing for so long: who started it may have been killed."""

WORK_SECONDS = 30
SILENT_SECONDS = 2.0
WHOLE_SECONDS = 10.0
LONGEST_LINE = 65_536
PIECE = 65_536
READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC

Answer = tuple[dict[str, Any], bytes]
Question = dict[str, Any]


def main() -> None:
    """Become a user without rights, and answer until nothing is asked any more."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(1))
    signal.alarm(IDLE_SECONDS)
    become(ROOT, int(sys.argv[1]))
    serve(ROOT, sys.stdin.buffer, sys.stdout.buffer, signal.alarm)


def become(root: str, user: int) -> None:
    """Give the folders to a user, which has no other rights, and become that user."""
    folders = (os.path.join(root, OWN), root)
    if os.stat(root).st_uid != user:
        for folder in folders:  # the root last, for it says that all is done
            os.chown(folder, user, user)
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    for folder in folders:
        os.chmod(folder, 0o700)


def serve(
    root: str, source: BinaryIO, target: BinaryIO, alarm: Callable[[int], object] = lambda _: None
) -> None:
    """Answer questions until their end.

    Args:
        root: Folder in which all paths lie.
        alarm: Limits how many seconds may pass until it is called again.
    """
    while line := source.readline(LONGEST_LINE):
        alarm(WORK_SECONDS)
        question = json.loads(line)
        body = source.read(question["size"])
        header, content = answer(root, question, body)
        target.write(json.dumps({**header, "size": len(content)}).encode() + b"\n" + content)
        target.flush()
        alarm(IDLE_SECONDS)


def answer(root: str, question: Question, body: bytes) -> Answer:
    """The answer to one question; what fails is in its `trouble`."""
    does = {
        **{"write": _write, "state": _state, "read": _read, "rename": _rename},
        **{"remove": _remove, "ask": _ask},
    }
    try:
        return does[question["do"]](root, question, body)
    except FileNotFoundError as error:
        return {"trouble": str(error), "absent": True}, b""
    except (OSError, ValueError, http.client.HTTPException) as error:
        return {"trouble": str(error) or type(error).__name__}, b""


def _write(root: str, question: Question, body: bytes) -> Answer:
    path = _inside(root, question["path"])
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    # Made for this user alone.
    number, draft = tempfile.mkstemp(prefix=".", dir=os.path.dirname(path))
    with os.fdopen(number, "wb") as file:
        file.write(body)
    os.replace(draft, path)
    return {}, b""


def _state(root: str, question: Question, _: bytes) -> Answer:
    found = os.lstat(_inside(root, question["path"]))
    return {"inode": found.st_ino, "bytes": found.st_size}, b""


def _read(root: str, question: Question, _: bytes) -> Answer:
    with open(os.open(_inside(root, question["path"]), READING), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{question['path']} is no regular file")
        file.seek(question["start"])
        return {}, file.read(question["stop"] - question["start"])


def _rename(root: str, question: Question, _: bytes) -> Answer:
    os.replace(_inside(root, question["path"]), _inside(root, question["target"]))
    return {}, b""


def _remove(root: str, question: Question, _: bytes) -> Answer:
    with contextlib.suppress(FileNotFoundError):
        os.remove(_inside(root, question["path"]))
    return {}, b""


def _inside(root: str, path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"{path} leads out of the folder")
    return os.path.join(root, path)


class _Admin(http.client.HTTPConnection):
    """Envoy's administration interface."""

    def __init__(self, path: str) -> None:
        super().__init__("envoy", timeout=SILENT_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SILENT_SECONDS)
        self.sock.connect(self._path)


def _ask(root: str, question: Question, _: bytes) -> Answer:
    give_up, content = time.monotonic() + WHOLE_SECONDS, bytearray()
    connection = _Admin(os.path.join(root, ADMIN))
    try:
        connection.request(question["method"], question["target"])
        response = connection.getresponse()
        while piece := response.read1(PIECE):
            content += piece
            if len(content) > question["most"]:
                raise OSError(f"its answer has more than {question['most']} bytes")
            if time.monotonic() > give_up:
                raise OSError(f"its answer takes more than {WHOLE_SECONDS:g} s")
        return {"status": response.status}, bytes(content)
    finally:
        connection.close()
