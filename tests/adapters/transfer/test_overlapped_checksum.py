"""A checksum of bytes that are added now and later is that of all bytes, in their order."""

import hashlib
from functools import partial
from queue import SimpleQueue

import pytest

from moorage.adapters.transfer.checksum import File
from moorage.adapters.transfer.overlapped_checksum import MOST_STEPS, OverlappedChecksum
from tests.hub.tiny import pattern

STEP = 1 << 16
DATA = pattern(4 * MOST_STEPS * STEP)
ANNOUNCED = {
    "sha256": hashlib.sha256(DATA).hexdigest(),
    "git_oid": hashlib.sha1(b"blob %d\0" % len(DATA) + DATA).hexdigest(),
    "md5": hashlib.md5(DATA).hexdigest(),
}


def a_file(kind: str) -> File:
    return File(name="a", size=len(DATA), **{kind: ANNOUNCED[kind]})  # type: ignore[misc]


@pytest.mark.parametrize("kind", ANNOUNCED)
@pytest.mark.parametrize("block", [1000 * 1000, STEP, 1 + STEP // 7])
def test_blocks_may_be_added_now_or_later(kind: str, block: int) -> None:
    checksum = OverlappedChecksum(a_file(kind))
    for number, start in enumerate(range(0, len(DATA), block)):
        data = memoryview(DATA)[start : start + block]
        (checksum.update if number % 5 == 0 else checksum.update_later)(data)
        assert checksum.size == start + len(data)
    assert checksum.mismatch() == ""
    assert checksum.sha256 == ("" if kind != "md5" else ANNOUNCED["sha256"])
    checksum.close()


def test_a_buffer_is_reused_when_its_bytes_are_added() -> None:
    checksum, free = OverlappedChecksum(a_file("sha256")), SimpleQueue[bytearray]()
    for size in (STEP, STEP + 1):
        free.put(bytearray(size))
    for start in range(0, len(DATA), STEP):
        buffer = free.get()
        buffer[:STEP] = DATA[start : start + STEP]
        checksum.update_later(memoryview(buffer)[:STEP])
        checksum.after(partial(free.put, buffer))
    assert checksum.mismatch() == ""
    checksum.close()


def test_other_bytes_do_not_match() -> None:
    checksum = OverlappedChecksum(a_file("sha256"))
    checksum.update_later(memoryview(DATA)[1:])
    checksum.close()
    assert "a has checksum" in checksum.mismatch()


def test_without_later_bytes_there_is_no_thread() -> None:
    checksum, called = OverlappedChecksum(a_file("sha256")), list[int]()
    checksum.update(DATA)
    checksum.after(lambda: called.append(1))
    assert (called, checksum._thread, checksum.mismatch()) == ([1], None, "")
