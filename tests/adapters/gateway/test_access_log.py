from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import httpx
import pytest

from moorage.adapters.gateway.access_log import AccessLog
from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.envoy_folder import LocalFolder
from moorage.common.failures import Failure
from moorage.gateway.envoy import ACCESS_LOG
from moorage.gateway.gateway import LogPosition
from tests.gateway.conftest import RunningGateway
from tests.gateway.tables import model
from tests.waiting import until


def log_file(folder: Path) -> Path:
    file = folder / ACCESS_LOG
    file.parent.mkdir()
    return file


def everything(log: AccessLog, position: LogPosition) -> tuple[list[bytes], LogPosition]:
    found: list[bytes] = []
    while True:
        lines, after = log.read(position)
        if after == position:
            return found, position
        found, position = found + lines, after


def test_each_line_is_read_once_and_only_when_it_is_whole(tmp_path: Path) -> None:
    log, file = AccessLog(LocalFolder(tmp_path)), log_file(tmp_path)
    assert log.read(LogPosition()) == ([], LogPosition())
    file.write_bytes(b"one\ntwo\nthr")
    lines, position = everything(log, LogPosition())
    assert lines == [b"one", b"two"]
    with file.open("ab") as more:
        more.write(b"ee\n")
    assert everything(log, position)[0] == [b"three"]


def test_what_was_renamed_is_read_to_its_end_first(tmp_path: Path) -> None:
    log, file = AccessLog(LocalFolder(tmp_path)), log_file(tmp_path)
    file.write_bytes(b"one\n")
    _, position = everything(log, LogPosition())
    with file.open("ab") as more:
        more.write(b"two\n")
    file.rename(file.with_name("access.1"))
    file.write_bytes(b"three\n")
    assert everything(log, position)[0] == [b"two", b"three"]


def test_a_large_log_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage.adapters.gateway.access_log.LARGEST_READ", 10)
    log_file(tmp_path).write_bytes(b"one\ntwo\nthree\nfour\n")
    lines, _ = everything(AccessLog(LocalFolder(tmp_path)), LogPosition())
    assert lines == [b"one", b"two", b"three", b"four"]


@pytest.mark.parametrize("name", ["access.log", "access.1"])
def test_a_line_longer_than_a_part_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("moorage.adapters.gateway.access_log.LARGEST_READ", 10)
    file = log_file(tmp_path)
    file.write_bytes(b"one\n" + b"x" * 45 + b"\ntwo\n")
    position = LogPosition(inode=file.stat().st_ino)
    file.rename(file.with_name(name))
    lines, _ = everything(AccessLog(LocalFolder(tmp_path)), position)
    assert [one for one in lines if b"x" not in one] == [b"one", b"two"]


class Reopened:
    """An Envoy that begins a new log when it is told to."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def reopen_log(self) -> None:
        self._file.touch()


def test_no_uncounted_line_is_lost_when_the_log_grows_faster_than_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.adapters.gateway.access_log.LARGEST_LOG", 1)
    monkeypatch.setattr("moorage.adapters.gateway.access_log.LARGEST_READ", 10)
    log, file = AccessLog(LocalFolder(tmp_path)), log_file(tmp_path)
    envoy = cast(Admin, Reopened(file))
    written = [b"line %d" % number for number in range(20)]
    position, found = LogPosition(), []
    for two in range(0, len(written), 2):
        with file.open("ab") as more:
            more.write(b"\n".join(written[two : two + 2]) + b"\n")
        lines, position = log.read(position)
        found += lines
        log.rotate(envoy, position)
    assert found + everything(log, position)[0] == written


def test_a_pipe_in_place_of_the_log_holds_nobody_up(tmp_path: Path) -> None:
    file = log_file(tmp_path)
    os.mkfifo(file)
    with pytest.raises(Failure, match="no regular file"):
        everything(AccessLog(LocalFolder(tmp_path)), LogPosition())


@pytest.mark.process
def test_a_log_that_was_renamed_without_telling_envoy_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = RunningGateway(tmp_path)
    log, file = AccessLog(LocalFolder(tmp_path)), tmp_path / ACCESS_LOG
    try:
        gateway.serve(model("llama"))
        gateway.ask("llama")
        until(lambda: file.exists() and file.stat().st_size)
        _, position = everything(log, LogPosition())
        monkeypatch.setattr("moorage.adapters.gateway.access_log.LARGEST_LOG", 1)
        with monkeypatch.context() as patched:
            patched.setattr(gateway.admin, "reopen_log", _killed)
            with pytest.raises(httpx.ConnectError):
                log.rotate(gateway.admin, position)
        gateway.ask("llama")
        log.rotate(gateway.admin, position)
        gateway.ask("llama")
        until(lambda: file.exists() and file.stat().st_size)
    finally:
        gateway.close()


def _killed() -> None:
    raise httpx.ConnectError("the service was killed here")
