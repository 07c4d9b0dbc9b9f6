"""Logs without end are read to the end that counts, in bounded memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.adapters.hosts.observation import MOST_BYTES, MOST_LINE, last_bytes, log_of_file
from moorage.common.units import GIB, MIB


def sparse(path: Path, size: int, end: bytes) -> Path:
    """A file of zeros with an end."""
    with path.open("wb") as log:
        log.truncate(size)
        log.seek(0, 2)
        log.write(end)
    return path


def test_one_line_of_ten_gigabytes_is_cut(tmp_path: Path) -> None:
    log = sparse(tmp_path / "log", 10 * GIB, b"x\nthe last line\n")
    tracemalloc.start()
    text = log_of_file(log, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    first, last = text.split("\n")
    assert last == "the last line"
    assert len(first) == MOST_LINE + len("...")
    assert peak < 32 * MIB


@pytest.mark.parametrize(
    ("content", "tail", "text"),
    [
        (b"", 5, ""),
        (b"a\nb\nc\n", 2, "b\nc"),
        (b"a\nb\nc", 2, "b\nc"),
        (b"a\nb\n\n", 2, "b\n"),
        (b"a\n", 9, "a"),
        (b"50%\r100%\r\ndone\n", 2, "100%\ndone"),
        (b"\xff\n", 1, "\ufffd"),
    ],
)
def test_the_last_lines_are_those_that_were_written_last(
    tmp_path: Path, content: bytes, tail: int, text: str
) -> None:
    (tmp_path / "log").write_bytes(content)
    assert log_of_file(tmp_path / "log", tail) == text


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert log_of_file(tmp_path / "log", 5) == ""


def test_of_a_stream_the_end_is_kept() -> None:
    def pieces() -> Iterator[bytes]:
        for number in range(100):
            yield b"%d" % (number % 10) * MIB

    tracemalloc.start()
    kept = last_bytes(pieces())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kept == b"".join(b"%d" % number * MIB for number in (6, 7, 8, 9))
    assert len(kept) == MOST_BYTES
    assert peak < 16 * MIB
    assert last_bytes([]) == b""
    assert last_bytes([b"abc", b"de"], 4) == b"bcde"
