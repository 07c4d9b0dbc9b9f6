"""What would make a model fit: each way is tried on the very fleet before it is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from moorage.models.memory import MemoryModel
from moorage.placement.demand import Ask, Demand, Split
from moorage.placement.kinds import AcceleratorKind
from moorage.placement.layout import MOST_ON_ONE_HOST
from moorage.placement.place import place_replica
from moorage.placement.request import Request
from moorage.placement.snapshot import FleetSnapshot
from moorage.placement.variants import other_checkpoints, other_options
from moorage.placement.view import HostView, look_at
from moorage.units import GIB, human_bytes

CONTEXTS = (131_072, 65_536, 32_768, 16_384, 8192, 4096, 2048)
SIZES = (16, 24, 32, 40, 48, 80, 96, 141, 192, 288)
"""Memory of accelerators that can be bought, in GiB."""

MOST_RELEASES = 16
"""Releases that are tried one by one as if they were retired."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried.

    Attributes:
        request: What fits nowhere.
        exact: The memory model behind it; None where there is only an estimate.
        fleet: The fleet that it does not fit on.
        views: Its hosts.
    """

    request: Request
    exact: MemoryModel | None
    fleet: FleetSnapshot
    views: list[HostView]


def remedies(
    request: Request, fleet: FleetSnapshot, exact: MemoryModel | None = None
) -> tuple[str, ...]:
    """Changes that would let the model be placed, the smallest first; empty when none is known.

    Args:
        request: What fits nowhere.
        fleet: The fleet.
        exact: Its memory model, where there is one.
    """
    trial = Trial(request, exact, fleet, [look_at(host) for host in fleet.hosts])
    tries = (_shorter, _options, _without_a_release, _checkpoint, _more_of_the_same, _larger)
    return tuple(way for attempt in tries if (way := next(attempt(trial), "")))


def _shorter(trial: Trial) -> Iterator[str]:
    wish = trial.request.demand.wish
    for tokens in CONTEXTS:
        if tokens >= wish.least_context:
            continue
        shorter = Demand(trial.request.demand.memory, replace(wish, context=tokens, stated=True))
        if _fits(replace(trial.request, demand=shorter), trial.views):
            yield f"Set `context: {tokens}`: with it the model fits."


def _options(trial: Trial) -> Iterator[str]:
    if trial.exact is None:
        return
    for arguments, request in other_options(trial.request, trial.exact):
        if _fits(request, trial.views):
            yield f"Add `{arguments}` to `engine.args`: with it the model fits."


def _without_a_release(trial: Trial) -> Iterator[str]:
    hosts = trial.fleet.hosts
    names = {claim.release: None for host in hosts for claim in host.claims if claim.release}
    for name in list(names)[:MOST_RELEASES]:
        views = [look_at(host) for host in trial.fleet.without(name).hosts]
        if _fits(trial.request, views):
            yield f"Retire {name}: in its place the model fits."


def _checkpoint(trial: Trial) -> Iterator[str]:
    for name, request in other_checkpoints(trial.request):
        seats, _ = place_replica(request, trial.views, 0)
        if seats:
            where, count = seats[0].host, len(seats[0].accelerators)
            on = f" on {count} accelerators of {where}" if count else f" on {where}"
            yield f"A checkpoint of it in {name} would fit{on}, as far as can be estimated."


def _more_of_the_same(trial: Trial) -> Iterator[str]:
    """How many accelerators of a kind that is there would do on one host."""
    most: dict[AcceleratorKind, int] = {}
    for view in trial.views:
        for kind, room in view.groups.items():
            most[kind] = max(most.get(kind, 0), len(room))
    for kind, there in most.items():
        if kind.type not in trial.request.engine.accelerator_types:
            continue
        for count in range(there + 1, MOST_ON_ONE_HOST + 1):
            ask = trial.request.demand.least(kind, Split(tensor=count))
            if isinstance(ask, Ask) and ask.bytes <= kind.total:
                yield (
                    f"A host with {count} x {kind} would do: {human_bytes(ask.bytes)} on each for"
                    f" {ask.tokens} tokens (the largest host has {there})."
                )
                break


def _larger(trial: Trial) -> Iterator[str]:
    """How large the accelerators of the largest host would have to be."""
    groups = [(len(room), kind) for view in trial.views for kind, room in view.groups.items()]
    usable = [one for one in groups if one[1].type in trial.request.engine.accelerator_types]
    if not usable:
        return
    there, kind = max(usable, key=lambda one: one[0] * one[1].total)
    for total in (size * GIB for size in SIZES if size * GIB > kind.total):
        larger = AcceleratorKind(kind.type, "", total)
        for count in range(1, there + 1):
            ask = trial.request.demand.least(larger, Split(tensor=count))
            if isinstance(ask, Ask) and ask.bytes <= total:
                each = human_bytes(ask.bytes)
                yield f"{count} x {human_bytes(total)} on one host would do: {each} on each."
                return


def _fits(request: Request, views: list[HostView]) -> bool:
    return bool(place_replica(request, views, 0)[0])
