"""How many hosts have so many accelerators with so much room, asked of all hosts at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import zip_longest

ABSENT = -1
"""Room of an accelerator that a host does not have."""


class Depths:
    """By rank, the room of each host's accelerator of that rank, sorted over all hosts.

    Each host is read once; a question then takes a search, not another look at every host.

    Attributes:
        most: Accelerators of the largest host.
        accelerators: Those of all hosts.
    """

    def __init__(self, rooms: Sequence[Sequence[int]]) -> None:
        """Take by host the room of its accelerators, most first."""
        self.most = max(map(len, rooms), default=0)
        self.accelerators = sum(map(len, rooms))
        self._columns = list(zip_longest(*rooms, fillvalue=ABSENT))
        self._sorted: dict[int, list[int]] = {}

    def hosts(self, count: int, needed: int) -> int:
        """Hosts that have at least so many accelerators with so many bytes of room each."""
        if not 1 <= count <= self.most:
            return 0
        if count not in self._sorted:
            self._sorted[count] = sorted(self._columns[count - 1])
        column = self._sorted[count]
        return len(column) - bisect_left(column, needed)
