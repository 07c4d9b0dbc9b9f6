"""What would make a model fit: each way is tried on the very fleet before it is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from moorage.placement.demand import Ask, Demand, Split, Wish
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.layout import MOST_ON_ONE_HOST
from moorage.placement.place import place_replica
from moorage.placement.request import Request
from moorage.placement.snapshot import FleetSnapshot
from moorage.placement.view import HostView, look_at
from moorage.units import GIB, human_bytes

CONTEXTS = (131_072, 65_536, 32_768, 16_384, 8192, 4096, 2048)
SIZES = (16, 24, 32, 40, 48, 80, 96, 141, 192, 288)
"""Memory of accelerators that can be bought, in GiB."""

MOST_RELEASES = 16
"""Releases that are tried one by one as if they were retired."""


def remedies(request: Request, fleet: FleetSnapshot) -> tuple[str, ...]:
    """Changes that would let the model be placed, the smallest first; empty when none is known."""
    views = [look_at(host) for host in fleet.hosts]
    return tuple(
        way
        for tries in (_shorter, _without_a_release, _more_of_the_same, _larger)
        if (way := next(tries(request, fleet, views), ""))
    )


def _shorter(request: Request, _fleet: FleetSnapshot, views: list[HostView]) -> Iterator[str]:
    wish = request.demand.wish
    for tokens in CONTEXTS:
        if tokens < wish.least_context and _fits(_with_wish(request, wish, tokens), views):
            yield f"Set `context: {tokens}`: with it the model fits."


def _without_a_release(
    request: Request, fleet: FleetSnapshot, _views: list[HostView]
) -> Iterator[str]:
    names = {claim.release: None for host in fleet.hosts for claim in host.claims if claim.release}
    for name in list(names)[:MOST_RELEASES]:
        if _fits(request, [look_at(host) for host in fleet.without(name).hosts]):
            yield f"Retire {name}: in its place the model fits."


def _more_of_the_same(
    request: Request, _fleet: FleetSnapshot, views: list[HostView]
) -> Iterator[str]:
    """How many accelerators of a kind that is there would do on one host."""
    most = {kind: len(room) for view in views for kind, room in view.groups.items()}
    for kind, there in most.items():
        if kind.type not in request.engine.accelerator_types:
            continue
        for count in range(1, MOST_ON_ONE_HOST + 1):
            ask = request.demand.least(kind, Split(tensor=count))
            if isinstance(ask, Ask) and ask.bytes <= kind.total and count > there:
                yield (
                    f"A host with {count} x {kind} would do: {human_bytes(ask.bytes)} on each for"
                    f" {ask.tokens} tokens (the largest host has {there})."
                )
                break


def _larger(request: Request, _fleet: FleetSnapshot, views: list[HostView]) -> Iterator[str]:
    """How large the accelerators of the largest host would have to be."""
    groups = [(len(room), kind) for view in views for kind, room in view.groups.items()]
    usable = [one for one in groups if one[1].type in request.engine.accelerator_types]
    if not usable:
        return
    there, kind = max(usable, key=lambda one: one[0] * one[1].total)
    for size in SIZES:
        total = size * GIB
        if total <= kind.total:
            continue
        for count in range(1, there + 1):
            larger = AcceleratorKind(kind.type, "", total)
            ask = request.demand.least(larger, Split(tensor=count))
            if isinstance(ask, Ask) and ask.bytes <= total:
                each = human_bytes(ask.bytes)
                yield f"{count} x {size} GiB on one host would do: {each} on each."
                return


def _fits(request: Request, views: list[HostView]) -> bool:
    return bool(place_replica(request, views, 0)[0])


def _with_wish(request: Request, wish: Wish, tokens: int) -> Request:
    shorter = replace(wish, context=tokens, stated=True)
    return replace(request, demand=Demand(request.demand.memory, shorter))
