"""The baseline: the closest peer's own rules, kept with their accidents to be compared with.

Source: GPUStack 47277d79 (2026-08-21), its selector for vLLM and its scorer. Where a rule is one
of the peer's defects, the code says so; our own policy does not follow it there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.baseline.allocatable import Room, rooms
from moorage.placement.baseline.manual import manual
from moorage.placement.baseline.many_hosts import many_hosts
from moorage.placement.baseline.one_accelerator import one_accelerator
from moorage.placement.baseline.one_host import one_host
from moorage.placement.baseline.refusal import Refusal, RefusedRequest
from moorage.placement.baseline.request import BaselineRequest, Found, gib
from moorage.placement.baseline.scores import scores
from moorage.placement.baseline.terms import FLAG, Terms, terms
from moorage.placement.baseline.views import by_type
from moorage.placement.candidate import Candidate


def header(terms: Terms) -> tuple[str, ...]:
    """What the model needs."""
    ram = f" and {gib(terms.ram)} of RAM" if terms.ram else ""
    lines = [f"The model requires approximately {gib(terms.claim)} of accelerator memory{ram}."]
    if terms.utilization:
        total = gib(terms.claim / terms.utilization)
        lines.append(
            f"With --{FLAG}={terms.utilization}, all accelerators together need {total}, and "
            f"{int(terms.utilization * 100)}% of each of them must be allocatable."
        )
    return tuple(lines)


def messages(terms: Terms, told: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The header and what the last strategy said that said anything.

    Args:
        terms: The request.
        told: The lines of each strategy, in the order in which they were tried.
    """
    tail = next((lines for lines in reversed(told) if lines), ())
    return (*header(terms), *tail)


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a request.

    Attributes:
        candidates: All of the first strategy that found any, in fleet order.
        scores: One for each candidate, 0 to 100.
        chosen: Index of the best candidate, the first of equals; None = nothing fits.
        refusal: Why the request was refused before any host was looked at.
        messages: Why nothing fits, or what is overcommitted.
    """

    candidates: tuple[Candidate, ...] = ()
    scores: tuple[float, ...] = ()
    chosen: int | None = None
    refusal: Refusal | None = None
    messages: tuple[str, ...] = ()


def decide(
    request: BaselineRequest,
    hosts: Sequence[HostSnapshot],
    same_model: Collection[str] = frozenset(),
    distributed: Collection[str] = frozenset(),
) -> Decision:
    """Place one replica.

    Args:
        request: The model and what the user wants.
        hosts: The fleet, in its order, which breaks ties. What devices report as free, what runs on
            hosts and whether they can be reached is not looked at.
        same_model: Releases among the hosts' claims that serve the model being placed.
        distributed: Releases among them whose replicas span hosts.
    """
    try:
        worked_out = terms(request)
    except RefusedRequest as refused:
        return Decision(refusal=refused.refusal, messages=(refused.refusal.meaning,))
    fleet = rooms(hosts, same_model)
    tried = _tried(worked_out, fleet, distributed)
    found = tried[-1].candidates
    rated = scores(request.strategy, found, fleet)
    told = not found or found[0].overcommit
    return Decision(
        candidates=found,
        scores=rated,
        chosen=rated.index(max(rated)) if rated else None,
        messages=messages(worked_out, [step.lines for step in tried]) if told else (),
    )


def _tried(terms: Terms, fleet: Sequence[Room], distributed: Collection[str]) -> list[Found]:
    """The strategies in order, up to the first that finds anything."""
    if terms.request.manual:
        return [manual(terms, fleet, distributed)]
    groups = by_type(fleet, first_look=True)
    tried = [one_accelerator(terms, groups)]
    for strategy in (one_host, many_hosts):
        if tried[-1].candidates:
            break
        if strategy is many_hosts or terms.wanted <= 1:
            groups = by_type(fleet, first_look=False)
        tried.append(strategy(terms, groups))
    return tried
