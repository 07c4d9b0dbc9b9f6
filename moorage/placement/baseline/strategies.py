"""Strategies if the user lists no accelerators: one, several on one host, several hosts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from moorage.common.refusal import Refusal
from moorage.common.units import GIB
from moorage.inventory.snapshot import Accelerator
from moorage.placement.baseline.rooms import Groups, View
from moorage.placement.baseline.terms import Terms
from moorage.placement.explanation import first_names
from moorage.placement.parallelism import multi_host_topology
from moorage.placement.placement import BaselineCandidate, HostShare

NO_COMBINATION = (
    "No combination of hosts can run the model. If the resources do suffice, select the "
    "accelerators yourself."
)


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """The result of a strategy.

    Attributes:
        candidates: In fleet order; empty = nothing fits this way.
        lines: Why nothing fits, or how the candidate is overcommitted; both fields empty = the
            strategy does not apply.
    """

    candidates: tuple[BaselineCandidate, ...] = ()
    lines: tuple[str, ...] = ()


def gib(amount: float) -> str:
    """Bytes as GiB with two decimals."""
    return f"{amount / GIB:.2f} GiB"


def one_accelerator(terms: Terms, groups: Groups) -> StrategyResult:
    """Every single accelerator that is large enough, unless more than one is wanted."""
    if terms.wanted > 1:
        return StrategyResult()
    views = [view for group in groups.values() for view in group]
    views = [view for view in views if view.room.ram >= terms.ram]
    candidates = tuple(found for view in views for found in _single(terms, view))
    return StrategyResult(candidates, () if candidates else (_largest_accelerator(terms, views),))


def _single(terms: Terms, view: View) -> Iterator[BaselineCandidate]:
    """The accelerators of a host that can each take the whole claim.

    If the engine takes a share, the claim must fit in that share of the total memory, and the share
    must be free; else the claim must fit in the remaining memory.
    """
    share = terms.utilization
    for item in view.accelerators:
        room = item.memory_total * share if share > 0 else view.left(item)
        if terms.claim <= room and view.ratio(item) >= share:
            taken = {item.index: terms.bytes_of(item, terms.claim)}
            yield BaselineCandidate(item.type, terms.share(view.room.host, [*taken], taken))


def _largest_accelerator(terms: Terms, views: Sequence[View]) -> str:
    all_left = ((view.left(item), view.ratio(item)) for view in views for item in view.accelerators)
    free, ratio = max(all_left, key=lambda pair: pair[0], default=(0, 0.0))
    part = f" ({ratio:.2%})" if terms.utilization else ""
    return f"The largest accelerator has {gib(free)} allocatable{part}."


def one_host(terms: Terms, groups: Groups) -> StrategyResult:
    """At most one candidate for each host; only candidates with the fewest accelerators remain.

    If the wanted number does not divide the model, the next larger number that does is taken (the
    peer's defect 6).
    """
    if terms.wanted == 1:
        return StrategyResult()
    pairs = [
        (name, view)
        for name, views in groups.items()
        for view in views
        if len(view.accelerators) > 1 and view.room.ram >= terms.ram
    ]
    found = [one for name, view in pairs if (one := _several(terms, name, view))]
    if not found:
        return StrategyResult(lines=tuple(_largest_host(terms, [view for _, view in pairs])))
    fewest = min(len(item.leader.accelerators) for item in found)
    return StrategyResult(tuple(item for item in found if len(item.leader.accelerators) == fewest))


def _several(terms: Terms, name: str, view: View) -> BaselineCandidate | None:
    taken: dict[int, int] = {}
    for count, item in enumerate(sorted(_eligible(terms, view), key=view.left, reverse=True), 1):
        taken[item.index] = terms.bytes_of(item, view.left(item))
        if not terms.allows(count) or count < terms.wanted:
            continue
        if sum(taken.values()) >= terms.claim:
            return BaselineCandidate(name, terms.share(view.room.host, [*taken], taken))
        if terms.wanted:
            break
    return None


def _eligible(terms: Terms, view: View) -> list[Accelerator]:
    """Accelerators with more left than the share, not just as much (the peer's defect 7)."""
    return [item for item in view.accelerators if view.ratio(item) > terms.utilization]


def _largest_host(terms: Terms, views: Sequence[View]) -> Iterator[str]:
    if not views:
        yield "No host offers several accelerators."
        return
    sums = ((sum(map(view.left, view.accelerators)), view) for view in views)
    free, largest = max(sums, key=itemgetter(0))
    count, total = len(_eligible(terms, largest)), len(largest.accelerators)
    if obstacle := terms.obstacle(count):
        yield f"{obstacle[1]}."
    text = f"The largest host has {gib(free)} allocatable"
    if terms.utilization:
        effective = free * terms.utilization * count / total
        text += f", {count}/{total} of its accelerators meet the utilization: {gib(effective)}"
    yield f"{text}."


def many_hosts(terms: Terms, groups: Groups) -> StrategyResult:
    """Whole hosts with equal numbers of accelerators: the first combination of each type."""
    candidates: list[BaselineCandidate] = []
    lines: Sequence[str] = ()
    for name, views in groups.items():
        if len(views) < 2:
            continue
        search = _Search(terms)
        if taken := search.combination(views):
            leader, *followers = (_whole_host(terms, view) for view in taken)
            candidates.append(BaselineCandidate(name, leader, tuple(followers)))
        else:
            lines = search.lines()
    return StrategyResult(tuple(candidates), () if candidates else tuple(lines))


@dataclass
class _Search:
    """The search for hosts of one type.

    Attributes:
        reasons: Why vLLM could not spread over hosts that have the memory.
        best: The rejected combination with the most memory.
        memory: Total bytes of that combination.
        unfit: Hosts of the same size that were passed over, since they lack free accelerators.
    """

    terms: Terms
    reasons: dict[str, None] = field(default_factory=dict)
    best: Sequence[View] = ()
    memory: int = 0
    unfit: int = 0

    def combination(self, views: Sequence[View]) -> Sequence[View]:
        """The hosts to take, trying larger hosts first; empty = no combination works."""
        for size in sorted({len(view.accelerators) for view in views}, reverse=True):
            group = [view for view in views if len(view.accelerators) == size]
            if len(group) > 1 and self.terms.allows(size) and (taken := self._of_size(group, size)):
                return taken
        return ()

    def lines(self) -> list[str]:
        """Why there is no combination."""
        return [*self.reasons, *self._best_combination(), NO_COMBINATION]

    def _of_size(self, group: Sequence[View], size: int) -> Sequence[View]:
        """The first hosts in fleet order that suffice together; empty = they never do."""
        terms, taken, memory, unfit = self.terms, list[View](), 0, 0
        for view in group:
            enough = all(view.ratio(item) >= terms.utilization for item in view.accelerators)
            unfit += not enough
            if view.room.ram < terms.ram or not enough:
                continue
            taken.append(view)
            share = terms.utilization or 1
            memory += sum(int(item.memory_total * share) for item in view.accelerators)
            count = len(taken) * size
            if terms.wanted and count > terms.wanted:
                break
            if count < terms.wanted or memory < terms.claim:
                continue
            refusal = self._topology_refusal(len(taken), size)
            if refusal is None:
                return taken
            self.reasons[refusal.note] = None
        if memory > self.memory:
            self.best, self.memory, self.unfit = taken, memory, unfit
        return ()

    def _topology_refusal(self, hosts: int, size: int) -> Refusal | None:
        """Why vLLM cannot spread over that many hosts; with Ray it always can."""
        if self.terms.native and hosts > 1:
            try:
                multi_host_topology([size] * hosts, self.terms.sizes)
            except Refusal as refusal:
                return refusal
        return None

    def _best_combination(self) -> list[str]:
        if not self.terms.utilization:
            return [f"The largest combination has {gib(self.memory)}."]
        if not self.best:
            return []
        names = first_names([view.room.host for view in self.best])
        text = f"The best combination is {names} with {gib(self.memory)}"
        unfit = f"; {self.unfit} other hosts of that size lack free accelerators"
        return [f"{text}{unfit if self.unfit else ''}."]


def _whole_host(terms: Terms, view: View) -> HostShare:
    """The share of a whole host; 0 bytes if the engine takes no share (the peer's defect 27)."""
    taken = {item.index: terms.bytes_of(item, 0) for item in view.accelerators}
    return terms.share(view.room.host, [*taken], taken)
