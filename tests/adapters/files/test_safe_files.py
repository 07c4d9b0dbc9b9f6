from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from moorage.adapters.files.safe_files import read_small, write_private
from moorage.adapters.files.specs import load_fleet, load_spec
from moorage.common.failures import Cause, Failure


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """What may lie where a file is expected, by what it is."""
    made = {
        name: tmp_path / name
        for name in ("pipe", "folder", "loop", "sparse", "pipe by link", "gone", "locked")
    }
    os.mkfifo(made["pipe"])
    made["folder"].mkdir()
    made["loop"].symlink_to(made["loop"])
    made["pipe by link"].symlink_to(made["pipe"])
    with made["sparse"].open("wb") as file:
        file.truncate(1 << 40)
    devices = [Path(name) for name in ("/dev/zero", "/dev/null", "/dev/tty", "/proc/self/mem")]
    longest = tmp_path / ("x" * 5000)
    return made | {device.name: device for device in devices} | {"longest": longest}


EVERY = [
    *("pipe", "folder", "loop", "sparse", "pipe by link", "gone", "locked"),
    *("zero", "null", "tty", "mem", "longest"),
]


@pytest.mark.parametrize("name", EVERY)
def test_what_is_no_small_file_is_refused_at_once(places: dict[str, Path], name: str) -> None:
    with pytest.raises(OSError, match=r"."):
        read_small(places[name], 1000)
    for load, cause in ((load_spec, Cause.BAD_SPEC), (load_fleet, Cause.BAD_FLEET)):
        with pytest.raises(Failure) as caught:
            load(places[name])
        assert caught.value.cause == cause
        assert str(places[name]) in caught.value.detail


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_small(file, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 B"):
        read_small(file, 4)


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (errno.ENOSPC, Cause.DISK_FULL),
        (errno.EDQUOT, Cause.DISK_FULL),
        (errno.EACCES, Cause.STORE_UNWRITABLE),
        (errno.EIO, Cause.STORE_UNWRITABLE),
    ],
)
def test_a_file_that_cannot_be_written_has_the_cause_of_its_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, cause: Cause
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(Failure) as refused:
        write_private(tmp_path / "login", "user:password", over=True)
    assert (refused.value.cause, refused.value.detail) == (
        cause,
        f"{tmp_path / 'login'}: {os.strerror(number)}",
    )
    assert list(tmp_path.iterdir()) == []
