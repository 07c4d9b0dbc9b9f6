"""The file of a report: replaced atomically; `is_foreign` detects files that are not reports."""

from pathlib import Path

from moorage.adapters.files.safe_files import write_whole
from moorage.common.failures import Cause, Failure
from moorage.reports.html import BEGINNING

NAME = "index.html"


def is_foreign(path: Path) -> bool:
    """Whether the path is something other than an earlier report."""
    try:
        with path.open("rb") as file:
            return file.read(len(BEGINNING)) != BEGINNING.encode()
    except FileNotFoundError:
        return False
    except OSError:  # for example a folder, or a file of another user
        return True


def write_report(path: Path, text: str) -> None:
    """Write a file atomically; raises `STORE_UNWRITABLE`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text, mode=0o644)  # a web server may be another user
    except OSError as error:
        raise Failure(
            Cause.STORE_UNWRITABLE,
            f"{path}: {error.strerror}",
            suggestion="Choose a folder where you may write, on a disk with room.",
        ) from error
