"""The access log of a gateway: read once, whatever is restarted, and never too large."""

from pathlib import Path

from moorage.adapters.files.safe_files import read_part
from moorage.adapters.gateway.admin import Admin
from moorage.common.units import MIB
from moorage.gateway.envoy import ACCESS_LOG
from moorage.gateway.gateway import LogPosition

LARGEST_LOG = 64 * MIB
"""The log has at most about twice these bytes: in its file and in the one before."""

LARGEST_READ = 4 * MIB


class AccessLog:
    """The log in the folder of one gateway."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / ACCESS_LOG
        self._before = self._file.with_suffix(".1")

    def read(self, position: LogPosition) -> tuple[list[bytes], LogPosition]:
        """The next whole lines after a position, and the position after them.

        What was renamed since is read to its end first.
        """
        for file in (self._before, self._file):
            if file.exists() and file.stat().st_ino == position.inode:
                lines, offset = _read_lines(file, position.offset)
                if lines or file == self._file:
                    return lines, LogPosition(inode=position.inode, offset=offset)
                break
        if not self._file.exists():
            return [], position
        return [], LogPosition(inode=self._file.stat().st_ino)

    def rotate(self, admin: Admin) -> None:
        """Begin a new file when the log is large.

        Where it was renamed and Envoy was not told, as by a service that was killed, it is now.
        """
        if not self._file.exists():
            if self._before.exists():
                admin.reopen_log()
        elif self._file.stat().st_size > LARGEST_LOG:
            self._file.replace(self._before)
            admin.reopen_log()


def _read_lines(file: Path, offset: int) -> tuple[list[bytes], int]:
    text = read_part(file, offset, offset + LARGEST_READ)
    whole, newline, _ = text.rpartition(b"\n")
    return (whole.split(b"\n"), offset + len(whole) + 1) if newline else ([], offset)
