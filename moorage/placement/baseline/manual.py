"""The strategy for accelerators that the user lists, and the check whether a replica fits there.

It ignores divisibility and free RAM, and also free memory if the engine takes no share (the peer's
defects 28 to 30). If no candidate fits, it overcommits.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from moorage.inventory.snapshot import Accelerator
from moorage.placement.baseline.rooms import Groups, Room, View
from moorage.placement.baseline.strategies import StrategyResult, gib
from moorage.placement.baseline.terms import Key, Terms
from moorage.placement.placement import BaselineCandidate, HostShare

Selection = Mapping[str, Mapping[str, Sequence[int]]]
"""Indexes by accelerator type and host, ascending."""

MIXED_TYPES = (
    "Accelerators of several types cannot form one replica: select one type, or let a replica "
    "take fewer of them."
)
SEVERAL_REPLICAS = (
    "Named accelerators are overcommitted for a single replica only; this model has several."
)


def manual(terms: Terms, rooms: Sequence[Room], spanning: Collection[str]) -> StrategyResult:
    """The candidates that fit; if none does, the one with the most memory left, overcommitted.

    Hosts with a release in `spanning` (releases that span hosts) get no follower.
    """
    selection: dict[str, dict[str, list[int]]] = {kind: {} for kind, _, _ in terms.listed}
    for kind, host, index in sorted(terms.listed, key=lambda key: key[2]):
        selection[kind].setdefault(host, []).append(index)
    if terms.wanted == len(terms.listed) and len(selection) > 1:
        return StrategyResult(lines=(MIXED_TYPES,))
    groups = {name: _views(rooms, name, hosts) for name, hosts in selection.items()}
    candidates = [*_on_one_host(terms, groups)]
    if not candidates and terms.wanted > 1:
        candidates = [*_on_many_hosts(terms, groups, selection, spanning)]
    fit = _fit(terms, rooms)
    fitting = tuple(one for one in candidates if fit.holds(one))
    if fitting or not candidates:
        return StrategyResult(fitting)
    if terms.spec.replicas > 1:
        return StrategyResult(lines=(SEVERAL_REPLICAS,))
    best = max(reversed(candidates), key=fit.effective)
    return StrategyResult((replace(best, overcommit=True),), tuple(fit.shortage(best)))


def _views(rooms: Sequence[Room], name: str, hosts: Mapping[str, Sequence[int]]) -> list[View]:
    """The hosts with the most listed accelerators first, and each host's emptiest ones first."""
    views = []
    for room in rooms:
        if room.accelerators and room.host in hosts:
            free = room.free_of_type(name)
            of_type = {item.index: item for item in room.accelerators if item.type == name}
            order = _by_rate(room.accelerators, free)
            chosen = (of_type[i] for i in order if i in hosts[room.host] and i in of_type)
            views.append(View(room, tuple(chosen), free))
    return sorted(views, key=lambda view: -len(view.accelerators))


def _by_rate(items: Sequence[Accelerator], amounts: Mapping[int, int]) -> list[int]:
    """Indexes by ratio of amount to total memory, largest first.

    If two types share an index, the memory of the later type counts.
    """
    rates = {item.index: amounts.get(item.index, 0) / item.memory_total for item in items}
    return sorted(rates, key=lambda index: -rates[index])


def _on_one_host(terms: Terms, groups: Groups) -> Iterator[BaselineCandidate]:
    """Each accelerator; or, on each host with enough, accelerators whose share is free first."""
    for name, views in groups.items():
        for view in views:
            if terms.wanted == 1:
                for item in view.accelerators:
                    yield BaselineCandidate(name, _share(terms, view, [item.index]))
            elif 1 < terms.wanted <= len(view.accelerators):
                items = sorted(view.accelerators, key=lambda i: view.ratio(i) < terms.utilization)
                indexes = [item.index for item in items[: terms.wanted]]
                yield BaselineCandidate(name, _share(terms, view, indexes))


def _on_many_hosts(
    terms: Terms, groups: Groups, selection: Selection, spanning: Collection[str]
) -> Iterator[BaselineCandidate]:
    """The host with the most accelerators leads and gives them all; the others give the rest."""
    for name, views in groups.items():
        if len(views) < 2:
            continue
        leader = _share(terms, views[0], selection[name][views[0].room.host])
        missing = terms.wanted - len(leader.accelerators)
        followers: list[HostShare] = []
        for view in views[1:]:
            if not view.room.releases.isdisjoint(spanning):
                continue
            indexes = selection[name][view.room.host]
            order = _by_rate(view.accelerators, _memory(terms, view, indexes))
            followers.append(_share(terms, view, order[: min(len(indexes), max(missing, 0))]))
            missing -= len(followers[-1].accelerators)
            if missing <= 0:
                break
        if followers:
            yield BaselineCandidate(name, leader, tuple(followers))


def _share(terms: Terms, view: View, indexes: Sequence[int]) -> HostShare:
    return terms.share(view.room.host, indexes, _memory(terms, view, indexes))


def _memory(terms: Terms, view: View, indexes: Sequence[int]) -> dict[int, int]:
    """Bytes to take of each; if the engine takes no share, each host takes the whole claim."""
    each = int(terms.claim / len(indexes)) if indexes else 0
    return {
        item.index: terms.bytes_of(item, each)
        for item in view.accelerators
        if item.index in indexes
    }


@dataclass(frozen=True, slots=True)
class _Fit:
    """Checks whether a candidate fits on the listed accelerators.

    Attributes:
        satisfied: Accelerators whose share is free; all if the engine takes no share.
    """

    terms: Terms
    left: Mapping[Key, int]
    satisfied: frozenset[Key]

    def holds(self, candidate: BaselineCandidate) -> bool:
        """Whether the shares cover the claim, and each accelerator's share is free."""
        memory = sum(sum(share.accelerator_bytes) for share in candidate.shares)
        ram = sum(share.ram_bytes for share in candidate.shares)
        return (
            memory >= self.terms.claim
            and ram >= self.terms.ram
            and self.satisfied.issuperset(_keys(candidate))
        )

    def effective(self, candidate: BaselineCandidate) -> float:
        """Bytes that the engine may take of the candidate's accelerators."""
        return self._free(candidate) * (self.terms.utilization or 1)

    def shortage(self, candidate: BaselineCandidate) -> Iterator[str]:
        """Why a candidate is overcommitted."""
        yield "The selected accelerators are overcommitted."
        keys, leader, share = _keys(candidate), candidate.leader, self.terms.utilization
        if len(keys) < len(self.terms.listed):
            rest = len(keys) - len(leader.accelerators)
            more = f" and {rest} of {len(candidate.followers)} other hosts" if rest else ""
            taken = f"{leader.host} {list(leader.accelerators)}{more}"
            yield f"Using {taken}, out of {len(self.terms.listed)} selected accelerators."
        effective = self.effective(candidate)
        text = f"They provide {gib(effective / (share or 1))} allocatable"
        if share:
            good = sum(key in self.satisfied for key in keys)
            text += f", {good}/{len(keys)} of them meet the utilization: {gib(effective)}"
        yield f"{text}."

    def _free(self, candidate: BaselineCandidate) -> int:
        """Bytes left on the candidate's accelerators; on all listed ones if it uses as many."""
        keys: Sequence[Key] = _keys(candidate)
        if len(keys) >= len(self.terms.listed):
            keys = self.terms.listed
        return sum(self.left.get(key, 0) for key in keys)


def _fit(terms: Terms, rooms: Sequence[Room]) -> _Fit:
    hosts = {host for _, host, _ in terms.listed}
    left = {
        (item.type, room.host, item.index): (free, item.memory_total)
        for room in rooms
        if room.host in hosts
        for item, free in zip(room.accelerators, room.free, strict=True)
    }
    if terms.utilization:
        rates = {key: free / total for key, (free, total) in left.items()}
        present = (key for key in terms.listed if key in rates)
        satisfied = {key for key in present if rates[key] >= terms.utilization}
    else:
        with_accelerators = {host for _, host, _ in left}
        satisfied = {key for key in terms.listed if key[1] in with_accelerators}
    return _Fit(terms, {key: free for key, (free, _) in left.items()}, frozenset(satisfied))


def _keys(candidate: BaselineCandidate) -> list[Key]:
    name = candidate.accelerator_type
    return [(name, share.host, index) for share in candidate.shares for index in share.accelerators]
