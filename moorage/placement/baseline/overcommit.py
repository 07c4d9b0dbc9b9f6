"""Whether named accelerators hold what is put on them, and which of them to overcommit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from moorage.placement.baseline.allocatable import Room
from moorage.placement.baseline.request import Found, gib
from moorage.placement.baseline.terms import Terms
from moorage.placement.candidate import Candidate

Key = tuple[str, str, int]
"""Accelerator type, host, index."""

SEVERAL_REPLICAS = (
    "Named accelerators are overcommitted for a single replica only; this model has several."
)


@dataclass(frozen=True, slots=True)
class _Named:
    """The named accelerators.

    Attributes:
        count: How many were named.
        free: Bytes left of all of them that exist.
        satisfied: Those whose share is free; all, when the engine takes no share.
    """

    count: int
    free: int
    satisfied: frozenset[Key]


def judge(
    terms: Terms,
    candidates: Sequence[Candidate],
    rooms: Sequence[Room],
    selection: Mapping[str, Mapping[str, Sequence[int]]],
) -> Found:
    """The candidates that fit; if none does, the one with the most memory left, overcommitted."""
    left = _left(rooms, selection)
    named = _named(terms, left, selection)
    fitting = tuple(item for item in candidates if _fits(terms, item, named))
    if fitting or not candidates:
        return Found(fitting)
    if terms.request.replicas > 1:
        return Found(lines=(SEVERAL_REPLICAS,))
    best = max(reversed(candidates), key=lambda item: _effective(terms, item, named, left))
    return Found((replace(best, overcommit=True),), tuple(_why(terms, best, named, left)))


def _left(
    rooms: Sequence[Room], selection: Mapping[str, Mapping[str, Sequence[int]]]
) -> dict[Key, tuple[int, int]]:
    """Bytes left and bytes in all of each accelerator on the hosts that are named."""
    return {
        (item.type, room.host, item.index): (free, item.memory_total)
        for room in rooms
        if any(room.host in hosts for hosts in selection.values())
        for item, free in zip(room.accelerators, room.free, strict=True)
    }


def _named(
    terms: Terms,
    left: Mapping[Key, tuple[int, int]],
    selection: Mapping[str, Mapping[str, Sequence[int]]],
) -> _Named:
    keys = [
        (name, host, index)
        for name, hosts in selection.items()
        for host, indexes in hosts.items()
        for index in indexes
    ]
    ratios = {key: left[key][0] / left[key][1] for key in keys if key in left}
    satisfied = {key for key, ratio in ratios.items() if ratio >= terms.utilization}
    if not terms.utilization:
        hosts = {host for _, host, _ in left}
        satisfied = {key for key in keys if key[1] in hosts}
    return _Named(len(keys), sum(left.get(key, (0, 0))[0] for key in keys), frozenset(satisfied))


def _fits(terms: Terms, candidate: Candidate, named: _Named) -> bool:
    memory = sum(sum(share.accelerator_bytes) for share in candidate.shares)
    ram = sum(share.ram_bytes for share in candidate.shares)
    return (
        memory >= terms.claim
        and ram >= terms.ram
        and all(key in named.satisfied for key in _keys(candidate))
    )


def _effective(
    terms: Terms, candidate: Candidate, named: _Named, left: Mapping[Key, tuple[int, int]]
) -> float:
    """What the engine may take; of all named accelerators, if it uses as many as were named."""
    keys = _keys(candidate)
    free = sum(left.get(key, (0, 0))[0] for key in keys) if len(keys) < named.count else named.free
    return free * (terms.utilization or 1)


def _why(
    terms: Terms, candidate: Candidate, named: _Named, left: Mapping[Key, tuple[int, int]]
) -> list[str]:
    keys = _keys(candidate)
    effective = _effective(terms, candidate, named, left)
    lines = ["The selected accelerators are overcommitted."]
    if len(keys) < named.count:
        leader = candidate.leader
        rest = len(keys) - len(leader.accelerators)
        more = f" and {rest} of {len(candidate.followers)} other hosts" if rest else ""
        taken = f"{leader.host} {list(leader.accelerators)}{more}"
        lines.append(f"Using {taken}, out of {named.count} selected accelerators.")
    good = sum(key in named.satisfied for key in keys)
    text = f"They provide {gib(effective / (terms.utilization or 1))} allocatable"
    if terms.utilization:
        text += f", {good}/{len(keys)} of them meet the utilization: {gib(effective)}"
    return [*lines, f"{text}."]


def _keys(candidate: Candidate) -> list[Key]:
    name = candidate.accelerator_type
    return [(name, share.host, index) for share in candidate.shares for index in share.accelerators]
