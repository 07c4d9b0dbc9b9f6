"""The access log of a gateway: each line read once across restarts, its size limited."""

from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.envoy_folder import EnvoyFolder
from moorage.common.units import MIB
from moorage.gateway.envoy import ACCESS_LOG, OLD_ACCESS_LOG
from moorage.gateway.gateway import LogPosition

LARGEST_LOG = 64 * MIB
"""Size at which the log is rotated; with the rotated file it takes about twice as much disk."""

LARGEST_READ = 4 * MIB
"""Most bytes that are read at once. A longer line is left out: Envoy writes none."""


class AccessLog:
    """The log in the folder of one gateway."""

    def __init__(self, folder: EnvoyFolder) -> None:
        self._folder = folder

    def read(self, position: LogPosition) -> tuple[list[bytes], LogPosition]:
        """The next whole lines after a position, and the position after them.

        A file that was rotated after that position is read to its end first.
        """
        for file in (OLD_ACCESS_LOG, ACCESS_LOG):
            found = self._folder.state(file)
            if found and found.inode == position.inode:
                lines, offset = self._read_lines(file, position.offset)
                if offset != position.offset or file == ACCESS_LOG:
                    return lines, LogPosition(inode=position.inode, offset=offset)
                break
        current = self._folder.state(ACCESS_LOG)
        return [], LogPosition(inode=current.inode) if current else position

    def rotate(self, admin: Admin, position: LogPosition) -> None:
        """Begin a new file once the log exceeds `LARGEST_LOG`, unless that loses uncounted lines.

        If a killed service renamed the file without notifying Envoy, notify Envoy now.

        Args:
            admin: The Envoy that writes the log.
            position: How far the log is counted. A file that was rotated earlier is replaced only
                once it is counted to its end.
        """
        found = self._folder.state(ACCESS_LOG)
        if not found:
            if self._folder.state(OLD_ACCESS_LOG):
                admin.reopen_log()
        elif found.size > LARGEST_LOG and found.inode == position.inode:
            self._folder.rename(ACCESS_LOG, OLD_ACCESS_LOG)
            admin.reopen_log()

    def _read_lines(self, file: str, offset: int) -> tuple[list[bytes], int]:
        text = self._folder.read(file, offset, offset + LARGEST_READ)
        whole, newline, _ = text.rpartition(b"\n")
        if newline:
            return whole.split(b"\n"), offset + len(whole) + 1
        return [], offset if len(text) < LARGEST_READ else offset + len(text)
