"""What a disk refuses is a failure with a cause; other errors pass."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from moorage.adapters.system.os_errors import disk_failures
from moorage.common.failures import Cause, Failure


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (errno.ENOSPC, Cause.DISK_FULL),
        (errno.EDQUOT, Cause.DISK_FULL),
        (errno.EROFS, Cause.STORE_UNWRITABLE),
        (errno.EIO, Cause.STORE_UNWRITABLE),
        (errno.ESTALE, Cause.STORE_UNWRITABLE),
    ],
)
def test_an_error_of_the_disk_names_the_folder(number: int, cause: Cause) -> None:
    error = OSError(number, os.strerror(number))
    with pytest.raises(Failure, match="/srv/models") as caught, disk_failures(Path("/srv/models")):
        raise error
    assert caught.value.cause == cause


def test_an_error_of_something_else_passes() -> None:
    with pytest.raises(ConnectionResetError), disk_failures(Path("/srv/models")):
        raise ConnectionResetError
