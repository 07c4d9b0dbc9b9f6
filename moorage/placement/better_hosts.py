"""Hosts on which a model would fit: emptied, extended, or with larger accelerators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from moorage.common.units import GIB, human_bytes
from moorage.inventory.snapshot import Accelerator, FleetSnapshot
from moorage.memory.demand import MemoryModel
from moorage.placement.candidates import MOST_ON_ONE_HOST
from moorage.placement.placement import Seat
from moorage.placement.request import Request
from moorage.placement.view import AcceleratorKind, HostView, view_of
from moorage.spec import Policy


@dataclass(frozen=True, slots=True)
class Trial:
    """A request that fits nowhere, to be tried under other circumstances.

    Attributes:
        request: What fits nowhere.
        exact: The memory model behind it; None where there is only an estimate.
        fleet: The fleet that it does not fit on.
        views: Its hosts.
        place: Places all replicas of a request on hosts; no seats = they do not fit.
    """

    request: Request
    exact: MemoryModel | None
    fleet: FleetSnapshot
    views: list[HostView]
    place: Callable[[Request, Sequence[HostView]], tuple[Seat, ...]]

    def seats(
        self, request: Request | None = None, views: Sequence[HostView] | None = None
    ) -> tuple[Seat, ...]:
        """The seats of all replicas of another request, or on other hosts; none = no fit."""
        return self.place(request or self.request, self.views if views is None else views)

    def seats_of_one(self, views: Sequence[HostView]) -> tuple[Seat, ...]:
        """The seats of one replica on other hosts by our own rules, whatever the policy."""
        spec = self.request.spec
        fitted = spec.placement.model_copy(update={"policy": Policy.FITTED})
        alone = spec.model_copy(update={"replicas": 1, "placement": fitted})
        return self.place(replace(self.request, spec=alone), views)


SIZES = (16, 24, 32, 40, 48, 80, 96, 141, 192, 288)
"""Memory of accelerators that can be bought, in GiB."""


def empty_or_extended_host(trial: Trial) -> Iterator[str]:
    """The largest host of each kind with nothing else on it, else with more accelerators."""
    for kind, view in _largest(trial).items():
        there = len(view.groups[kind])
        if usage := _usage_on(trial, view, _emptied(view)):
            each, count, _ = usage
            yield f"{view.host.name} would do with nothing else on it: {each} on each of {count}."
            continue
        for number in _plentiful_counts(trial, view, kind):
            if usage := _usage_on(trial, view, _with(view, kind, number)):
                each, count, tokens = usage
                yield (
                    f"A host with {count} x {kind} would do: {each} on each for {tokens} tokens"
                    f" (the largest host has {there})."
                )
                break


def larger_accelerators(trial: Trial) -> Iterator[str]:
    """The size at which accelerators of the largest host would do; none for listed accelerators."""
    largest = _largest(trial)
    if not largest or trial.request.listed_accelerators:
        return
    kind, view = max(largest.items(), key=lambda one: len(one[1].groups[one[0]]) * one[0].total)
    for total in (size * GIB for size in SIZES if size * GIB > kind.total):
        bought = AcceleratorKind(kind.type, "", total)
        if usage := _usage_on(trial, view, _with(view, bought, len(view.groups[kind]))):
            each, count, _ = usage
            size = f"{human_bytes(total)} ({kind.type})"
            yield f"{count} x {size} on one host would do: {each} on each."
            return


def _largest(trial: Trial) -> dict[AcceleratorKind, HostView]:
    """By kind that the engine can use, and the user wants, the host with most of it."""
    request = trial.request
    types, wanted = request.engine.accelerator_types, request.spec.placement.accelerator_kinds
    largest: dict[AcceleratorKind, HostView] = {}
    for view in trial.views:
        for kind, room in view.groups.items():
            if kind.type not in types or not kind.is_one_of(wanted):
                continue
            if kind not in largest or len(room) > len(largest[kind].groups[kind]):
                largest[kind] = view
    return largest


def _plentiful_counts(trial: Trial, view: HostView, kind: AcceleratorKind) -> list[int]:
    """Accelerators that one replica, and all together, would take where there are plenty."""
    if trial.request.listed_accelerators:
        return []
    plenty = [_with(view, kind, MOST_ON_ONE_HOST)]
    one = trial.seats_of_one(plenty)
    return sorted({_number(seats) for seats in (one, trial.seats(views=plenty)) if seats})


def _usage_on(trial: Trial, view: HostView, other: HostView) -> tuple[str, int, int] | None:
    """Bytes of each, accelerators and tokens on another host in a host's place, if all fits."""
    if not trial.seats_of_one([other]):
        return None
    seats = trial.seats(views=[other if one is view else one for one in trial.views])
    on_it = [seat for seat in seats if seat.host == view.host.name and seat.accelerators]
    if not on_it:
        return None
    each = max(size for seat in on_it for size in seat.accelerator_bytes)
    return human_bytes(each), _number(on_it), min(seat.tokens for seat in on_it)


def _number(seats: Sequence[Seat]) -> int:
    return len({index for seat in seats for index in seat.accelerators})


def _emptied(view: HostView) -> HostView:
    items = view.host.accelerators
    free = tuple(i.model_copy(update={"memory_free": i.memory_total}) for i in items)
    return _bare(view, free)


def _with(view: HostView, kind: AcceleratorKind, number: int) -> HostView:
    """The host with so many accelerators of one kind instead of its own, and nothing on it."""
    accelerators = tuple(
        Accelerator(
            type=kind.type,
            index=index,
            name=kind.name,
            memory_total=kind.total,
            memory_free=kind.total,
        )
        for index in range(number)
    )
    return _bare(view, accelerators)


def _bare(view: HostView, accelerators: tuple[Accelerator, ...]) -> HostView:
    empty = {"claims": (), "ports_in_use": (), "ram_free": view.host.ram_total}
    return view_of(view.host.model_copy(update={**empty, "accelerators": accelerators}))
