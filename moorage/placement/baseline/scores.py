"""How good a candidate is, from 0 to 100."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moorage.placement.baseline.rooms import Room
from moorage.placement.ranking import BaselineCandidate, Share
from moorage.spec import Strategy

HOST_WEIGHT, ACCELERATOR_WEIGHT = 0.85, 0.15
OTHERS_ON_ACCELERATOR = 0.2
"""What a replica of another model counts on an accelerator, one of the same model being 1."""

Range = tuple[int, int]
"""The fewest and the most replicas on the leaders' hosts."""

Weights = tuple[float, float, float]
"""A base, and what few replicas of the same model and of others add to it."""

FREE_OF_MODEL: Weights = (0.85, 0.0, 0.15)
BESIDE_FREE: Weights = (0.45, 0.35, 0.20)
NONE_FREE: Weights = (0.50, 0.25, 0.15)

MEMORY_WEIGHT, RAM_WEIGHT = 2.0, 1.0
LEADER_WEIGHT, FOLLOWER_WEIGHT = 5.0, 1.0


def scores(
    strategy: Strategy, candidates: Sequence[BaselineCandidate], rooms: Sequence[Room]
) -> tuple[float, ...]:
    """One score for each candidate; the first of the highest is the best one."""
    by_host = {room.host: room for room in rooms}
    if strategy is Strategy.SPREAD:
        return _spread(candidates, by_host)
    return tuple(_filling(candidate, by_host) for candidate in candidates)


def _spread(
    candidates: Sequence[BaselineCandidate], rooms: Mapping[str, Room]
) -> tuple[float, ...]:
    """Where the fewest replicas run, of this model first.

    Only leaders count (the peer's defect 12).
    """
    if not candidates:
        return ()
    leaders = [rooms[candidate.leader.host] for candidate in candidates]
    same = _range(room.same.total for room in leaders)
    others = _range(room.others.total for room in leaders)
    return tuple(
        _host(room, same, others) * 100.0 * HOST_WEIGHT
        + _accelerators(room, candidate) * 100.0 * ACCELERATOR_WEIGHT
        for room, candidate in zip(leaders, candidates, strict=True)
    )


def _range(counts: Iterable[int]) -> Range:
    every = list(counts)
    return min(every), max(every)


def _host(room: Room, same: Range, others: Range) -> float:
    """The score of a leader's host among the hosts of all leaders."""
    weights = NONE_FREE
    if same[0] == 0:
        weights = BESIDE_FREE if room.same.total else FREE_OF_MODEL
    base, for_same, for_others = weights
    return (
        base
        + for_same * _fewness(room.same.total, *same)
        + for_others * _fewness(room.others.total, *others)
    )


def _fewness(count: int, fewest: int, most: int) -> float:
    """1 for the fewest, 0 for the most."""
    return 1.0 if most <= fewest else 1.0 - (count - fewest) / (most - fewest)


def _accelerators(room: Room, candidate: BaselineCandidate) -> float:
    same, others = room.same.accelerators, room.others.accelerators
    parts = [
        1 / (1 + same.get(index, 0) + others.get(index, 0) * OTHERS_ON_ACCELERATOR)
        for index in candidate.leader.accelerators
    ]
    return sum(parts) / len(parts) if parts else 1.0


def _filling(candidate: BaselineCandidate, rooms: Mapping[str, Room]) -> float:
    """How much of what is left it fills.

    Followers rank by the sum of their scores, not by the mean (the peer's defect 12).
    """
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
    ram = _part(share.ram_bytes, room.ram)
    if not share.accelerators:
        return ram
    pairs = zip(share.accelerators, share.accelerator_bytes, strict=True)
    fullest = max(_part(taken, free.get(index, 0)) for index, taken in pairs)
    return (ram * RAM_WEIGHT + fullest * MEMORY_WEIGHT) / (RAM_WEIGHT + MEMORY_WEIGHT)


def _part(taken: int, free: int) -> float:
    return taken / free * 100.0 if free else 0.0
