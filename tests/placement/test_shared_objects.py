"""Placement compares values: whether two hosts share the objects behind them changes nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.request import Request
from tests.placement.worlds import fleets, placement_of, requests


def grown(fleet: FleetSnapshot, times: int) -> FleetSnapshot:
    """Every host so many times, under other names, with the very same accelerators and claims."""
    return FleetSnapshot(
        hosts=tuple(
            host.model_copy(update={"name": f"{host.name}-{number}"})
            for number in range(times)
            for host in fleet.hosts
        )
    )


def apart(fleet: FleetSnapshot) -> FleetSnapshot:
    """The same fleet, of which no two hosts share an object."""
    return FleetSnapshot.model_validate_json(fleet.model_dump_json())


@given(fleets, requests(), st.integers(1, 4))
def test_the_answer_does_not_depend_on_objects_being_shared(
    fleet: FleetSnapshot, request: Request, times: int
) -> None:
    shared = grown(fleet, times)
    assert placement_of(request, shared) == placement_of(request, apart(shared))


@given(fleets, fleets, requests())
def test_what_was_asked_before_does_not_change_the_answer(
    fleet: FleetSnapshot, other: FleetSnapshot, request: Request
) -> None:
    first = placement_of(request, fleet)
    placement_of(request, other)
    assert placement_of(request, fleet) == first
