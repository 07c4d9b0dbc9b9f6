"""How good a candidate is, from 0 to 100."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moorage.placement.baseline.allocatable import Room
from moorage.placement.baseline.request import Strategy
from moorage.placement.baseline.spread import spread_scores
from moorage.placement.candidate import Candidate, Share

MEMORY_WEIGHT, RAM_WEIGHT = 2.0, 1.0
LEADER_WEIGHT, FOLLOWER_WEIGHT = 5.0, 1.0


def scores(
    strategy: Strategy, candidates: Sequence[Candidate], rooms: Sequence[Room]
) -> tuple[float, ...]:
    """One score for each candidate; the first of the highest is the best one."""
    by_host = {room.host: room for room in rooms}
    if strategy is Strategy.SPREAD:
        return spread_scores(candidates, by_host)
    return tuple(_filling(candidate, by_host) for candidate in candidates)


def _filling(candidate: Candidate, rooms: Mapping[str, Room]) -> float:
    """Followers weigh by the sum of their scores, not by the mean (the peer's defect 12)."""
    room = rooms[candidate.leader.host]
    leader = _share(candidate.leader, room, room.free_of_type(candidate.accelerator_type))
    count = len(candidate.followers)
    if not count:
        return leader
    followers = 0.0
    for share in candidate.followers:
        room = rooms[share.host]
        followers += _share(share, room, room.free_by_index)
    weighed = leader * LEADER_WEIGHT + followers * count * FOLLOWER_WEIGHT
    return weighed / (LEADER_WEIGHT + FOLLOWER_WEIGHT * count)


def _share(share: Share, room: Room, free: Mapping[int, int]) -> float:
    """The fullest accelerator counts; nothing left counts as not filled."""
    ram = _part(share.ram_bytes, room.ram) * RAM_WEIGHT
    if not share.accelerators:
        return _part(share.ram_bytes, room.ram)
    pairs = zip(share.accelerators, share.accelerator_bytes, strict=True)
    fullest = max(_part(taken, free.get(index, 0)) * MEMORY_WEIGHT for index, taken in pairs)
    return (ram + fullest) / (RAM_WEIGHT + MEMORY_WEIGHT)


def _part(taken: int, free: int) -> float:
    return taken / free * 100.0 if free else 0.0
