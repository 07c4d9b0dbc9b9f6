"""The rules decide on the hosts that pass our filters.

Two things stay ours: what the gate would refuse is not proposed, and what is claimed is what the
engine gets.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.common.refusal import Reason
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.baseline.manual import manual
from moorage.placement.baseline.rooms import Room, by_type, rooms
from moorage.placement.baseline.scores import scores
from moorage.placement.baseline.seats import Seating
from moorage.placement.baseline.strategies import (
    Outcome,
    gib,
    many_hosts,
    one_accelerator,
    one_host,
)
from moorage.placement.baseline.terms import FLAG, Terms, read_terms
from moorage.placement.explanation import Verdict
from moorage.placement.placement import Seat
from moorage.placement.ranking import Ranking
from moorage.placement.request import Request
from moorage.placement.view import HostView, kind_of

WITHOUT_OTHERS = "could take part, but the hosts that it would be joined with cannot"


def place_by_rules(
    request: Request, views: Sequence[HostView], replica: int
) -> tuple[tuple[Seat, ...], dict[str, Verdict]]:
    """Seats for one replica (none when nothing fits), and a verdict for each host.

    Args:
        request: What is to be placed.
        views: The hosts that pass the filters.
        replica: Its number.
    """
    hosts = [_usable(view) for view in views]
    ranking = rank(request, hosts)
    seating = Seating(request, terms_of(request), {host.name: host for host in hosts}, replica)
    seats, at_gate = _best_seats(seating, ranking)
    return seats, {**_verdicts(ranking, hosts, fits=bool(seats)), **at_gate}


def rank_by_rules(request: Request, views: Sequence[HostView]) -> Ranking:
    """What the rules rank for the first replica, on the hosts that pass the filters."""
    return rank(request, [_usable(view) for view in views])


def rank(request: Request, hosts: Sequence[HostSnapshot]) -> Ranking:
    """The candidates of the first strategy that finds any.

    Args:
        request: What is to be placed.
        hosts: The fleet, in its order, which breaks ties. What devices report as free, what runs on
            hosts and whether they can be reached does not count.
    """
    needs = terms_of(request)
    claims = [claim for host in hosts for claim in host.claims]
    fleet = rooms(hosts, {claim.release for claim in claims if request.is_own(claim.release)})
    if needs.listed:
        outcomes = [manual(needs, fleet, {claim.release for claim in claims if claim.links})]
    else:
        outcomes = _automatic(request, needs, fleet)
    candidates = outcomes[-1].candidates
    explained = not candidates or candidates[0].overcommit
    return Ranking(
        needed=needs.claim,
        candidates=candidates,
        scores=scores(request.spec.placement.strategy, candidates, fleet),
        messages=messages(needs, outcomes) if explained else (),
    )


def terms_of(request: Request) -> Terms:
    """The request in the words of the rules."""
    return read_terms(request.spec, request.profile, request.adapter_bytes)


def messages(terms: Terms, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """What the model needs, and why the last strategy that applies does not find it."""
    ram = f" and {gib(terms.ram)} of RAM" if terms.ram else ""
    lines = [f"The model requires approximately {gib(terms.claim)} of accelerator memory{ram}."]
    if share := terms.utilization:
        total = gib(terms.claim / share)
        lines.append(
            f"With --{FLAG}={share}, all accelerators together need {total}, and "
            f"{int(share * 100)}% of each of them must be allocatable."
        )
    return (*lines, *next((one.lines for one in reversed(outcomes) if one.lines), ()))


def _automatic(request: Request, terms: Terms, fleet: Sequence[Room]) -> list[Outcome]:
    """The strategies in order, up to the first that finds anything."""
    outcomes = [one_accelerator(terms, by_type(fleet, all_types=True))]
    if not outcomes[-1].candidates:
        # Where several are wanted, the strategy before does not group the fleet.
        outcomes.append(one_host(terms, by_type(fleet, all_types=terms.wanted > 1)))
    if not outcomes[-1].candidates and request.spans_hosts:
        outcomes.append(many_hosts(terms, by_type(fleet, all_types=False)))
    return outcomes


def _usable(view: HostView) -> HostSnapshot:
    """The host with the accelerators that the engine can use."""
    items = tuple(
        item
        for item in view.host.accelerators
        if kind_of(item.type, item.name, item.memory_total) in view.groups
    )
    if len(items) == len(view.host.accelerators):
        return view.host
    return view.host.model_copy(update={"accelerators": items})


def _best_seats(seating: Seating, ranking: Ranking) -> tuple[tuple[Seat, ...], dict[str, Verdict]]:
    """The seats of the best candidate that the gate lets through, and who is refused there."""
    refused: dict[str, Verdict] = {}
    pairs = zip(ranking.candidates, ranking.scores, strict=True)
    for candidate, _ in sorted(pairs, key=lambda pair: -pair[1]):
        seats, reasons = seating.seats_of(candidate)
        if seats:
            taken = {seat.host for seat in seats}
            return seats, {name: one for name, one in refused.items() if name not in taken}
        refused = {**reasons, **refused}
    return (), refused


def _verdicts(ranking: Ranking, hosts: Sequence[HostSnapshot], fits: bool) -> dict[str, Verdict]:
    """What the rules make of each host. Where nothing fits, a candidate lacks the others."""
    best: dict[str, float] = {}
    for candidate, score in zip(ranking.candidates, ranking.scores, strict=True):
        for part in candidate.shares:
            best[part.host] = max(score, best.get(part.host, 0.0))
    why = " ".join(ranking.messages) or "another strategy or host was preferred"
    return {
        host.name: Verdict(host.name, Reason.ACCELERATOR_MEMORY, note=why)
        if host.name not in best
        else Verdict(host.name, score=best[host.name])
        if fits
        else Verdict(host.name, Reason.TOO_FEW_HOSTS, note=WITHOUT_OTHERS)
        for host in hosts
    }
