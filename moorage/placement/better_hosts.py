"""Hosts on which a model would fit: those that are there, emptied, extended or with larger ones."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.placement.kinds import AcceleratorKind
from moorage.placement.layout import MOST_ON_ONE_HOST
from moorage.placement.place import place_replica
from moorage.placement.placement import Seat
from moorage.placement.snapshot import Accelerator
from moorage.placement.trial import Trial
from moorage.placement.view import HostView, look_at
from moorage.units import GIB, human_bytes

SIZES = (16, 24, 32, 40, 48, 80, 96, 141, 192, 288)
"""Memory of accelerators that can be bought, in GiB."""


def emptied_or_extended(trial: Trial) -> Iterator[str]:
    """The largest host of each kind with nothing else on it, else with more accelerators."""
    for kind, view in _largest(trial).items():
        there = len(view.groups[kind])
        if seat := _seat_on(trial, view, kind, there):
            each, count = human_bytes(seat.accelerator_bytes[0]), len(seat.accelerators)
            yield f"{seat.host} would do with nothing else on it: {each} on each of {count}."
        elif seat := _seat_on(trial, view, kind, _enough(trial, view, kind)):
            each, count = human_bytes(seat.accelerator_bytes[0]), len(seat.accelerators)
            yield (
                f"A host with {count} x {kind} would do: {each} on each for {seat.tokens} tokens"
                f" (the largest host has {there})."
            )


def larger(trial: Trial) -> Iterator[str]:
    """How large the accelerators of the largest host would have to be."""
    largest = _largest(trial)
    if not largest:
        return
    kind, view = max(largest.items(), key=lambda one: len(one[1].groups[one[0]]) * one[0].total)
    for total in (size * GIB for size in SIZES if size * GIB > kind.total):
        bought = AcceleratorKind(kind.type, "", total)
        if seat := _seat_on(trial, view, bought, len(view.groups[kind])):
            count, each = len(seat.accelerators), human_bytes(seat.accelerator_bytes[0])
            yield f"{count} x {human_bytes(total)} on one host would do: {each} on each."
            return


def _largest(trial: Trial) -> dict[AcceleratorKind, HostView]:
    """By kind that the engine can use the host with most accelerators of it."""
    found: dict[AcceleratorKind, HostView] = {}
    for view in trial.views:
        for kind, room in view.groups.items():
            if kind.type not in trial.request.engine.accelerator_types:
                continue
            if kind not in found or len(room) > len(found[kind].groups[kind]):
                found[kind] = view
    return found


def _enough(trial: Trial, view: HostView, kind: AcceleratorKind) -> int:
    """Accelerators that the replica would take where there are plenty; 0 = no number will do."""
    seats, _ = place_replica(trial.request, [_with(view, kind, MOST_ON_ONE_HOST)], 0)
    return len(seats[0].accelerators) if seats else 0


def _seat_on(trial: Trial, view: HostView, kind: AcceleratorKind, number: int) -> Seat | None:
    """A seat on a host that has just these accelerators, if the model fits with it."""
    other = _with(view, kind, number)
    if not place_replica(trial.request, [other], 0)[0]:
        return None
    seats = trial.seats(views=[other if one is view else one for one in trial.views])
    on_it = (seat for seat in seats if seat.host == view.host.name and seat.accelerators)
    return next(on_it, None)


def _with(view: HostView, kind: AcceleratorKind, number: int) -> HostView:
    """A host with nothing on it and so many accelerators of one kind."""
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
    empty = {"claims": (), "ports_in_use": (), "ram_free": view.host.ram_total}
    return look_at(view.host.model_copy(update={**empty, "accelerators": accelerators}))
