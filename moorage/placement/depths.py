"""How many hosts have so many accelerators with so much room, asked of all hosts at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Depths:
    """By rank, the room of each host's accelerator of that rank, sorted over all hosts.

    Each host is read once; a question then takes a search, not another look at every host.
    """

    def __init__(self, rooms: Sequence[Sequence[int]]) -> None:
        """Take by host the room of its accelerators, most first."""
        self.most = max(map(len, rooms), default=0)
        self._columns: list[list[int]] = [[] for _ in range(self.most)]
        for room in rooms:
            for column, left in zip(self._columns, room, strict=False):
                column.append(left)
        for column in self._columns:
            column.sort()
        self.accelerators = sum(map(len, self._columns))

    def hosts(self, count: int, needed: int) -> int:
        """Hosts that have at least so many accelerators with so many bytes of room each."""
        if not 1 <= count <= self.most:
            return 0
        column = self._columns[count - 1]
        return len(column) - bisect_left(column, needed)
