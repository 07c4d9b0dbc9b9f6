"""Seats over unequal hosts: every accelerator is a pipeline stage of its own."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from moorage.placement.demand import Ask, Split
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.request import Request

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


MOST_STAGES = 256


@dataclass(frozen=True, slots=True)
class Stages:
    """A pipeline over several hosts.

    Attributes:
        world: Its stages, one accelerator each.
        ask: What is taken of each of them.
    """

    world: int
    ask: Ask


def stages_over_hosts(request: Request, kind: AcceleratorKind, depths: Depths) -> dict[int, Stages]:
    """By number of hosts, from two, the shortest pipeline for which so many are needed.

    Args:
        request: What is to be placed.
        kind: The kind of accelerator.
        depths: The room of the accelerators of all hosts.
    """
    found: dict[int, Stages] = {}
    for world in _worlds(request, depths.accelerators):
        ask = request.demand.least(kind, Split(pipeline=world))
        if isinstance(ask, str) or ask.bytes > kind.total:
            continue
        hosts = _hosts_for(world, ask.bytes, depths)
        if hosts and hosts not in found:
            found[hosts] = Stages(world, ask)
    return found


def shares(world: int, able: Sequence[int], hosts: int) -> list[int]:
    """How many stages each of so many hosts takes: as many as it can, and at least one.

    Args:
        world: Stages in all.
        able: By host how many it can take, most first.
        hosts: Hosts that take part.
    """
    taken, left = [], world
    for at, number in enumerate(able[:hosts]):
        share = min(number, left - (hosts - at - 1))
        taken.append(share)
        left -= share
    return taken


def _worlds(request: Request, there: int) -> Iterable[int]:
    stated = request.stated
    if stated:
        return [stated.world] if stated.pipeline == stated.world else []
    if request.count is not None:
        return [request.count]
    return range(2, min(there, request.profile.layers or MOST_STAGES, MOST_STAGES) + 1)


def _hosts_for(world: int, needed: int, depths: Depths) -> int:
    """The fewest hosts, and never one alone, on which so many stages find room; 0 = none do."""
    hosts, left = 0, world
    for each in range(depths.most, 0, -1):
        there = depths.hosts(each, needed) - depths.hosts(each + 1, needed)
        more = min(there, -(-left // each))
        hosts, left = hosts + more, left - more * each
        if left <= 0:
            break
    if left > 0 or world < 2:
        return 0
    if hosts > 1:
        return hosts
    return 2 if depths.hosts(1, needed) > 1 else 0
