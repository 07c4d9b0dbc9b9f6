"""What holds for every fleet and every wish, however they come."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import ceil

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.filters import Filters, filter_hosts
from moorage.placement.placement import Placement, Seat
from moorage.placement.request import Request
from moorage.placement.role import Role
from moorage.placement.view import kinds_of, view_of, views_of
from moorage.spec import Distributed, Policy, Strategy
from tests.builders import a_fleet, a_host
from tests.placement.worlds import (
    NAMES,
    PORTS,
    World,
    changed,
    fleets,
    gate,
    placement_of,
    requests,
    selections,
)


@given(fleets, st.lists(st.tuples(requests(), st.integers(0, 4), st.booleans()), max_size=6))
def test_nothing_is_held_twice_whatever_comes_and_goes(
    fleet: FleetSnapshot, arrivals: list[tuple[Request, int, bool]]
) -> None:
    world = World(fleet)
    for number, (request, leaving, settles) in enumerate(arrivals):
        seen = world.survey()
        claims = placement_of(request, seen).claims
        assert gate(seen, claims) == []
        world.hold(f"r{number}.v1", claims, pending=True)
        assert world.overcommitted() == []
        if settles:
            world.settle()
        world.held.pop(f"r{leaving}.v1", None)


some_claims = st.lists(
    st.builds(
        Claim,
        host=st.just("gpu-1"),
        resource=st.sampled_from([Resource.ACCELERATOR, Resource.RAM]),
        index=st.just(0),
        amount=st.integers(1, 100 * GIB),
    )
    | st.builds(
        Claim,
        host=st.just("gpu-1"),
        resource=st.just(Resource.PORT),
        index=st.integers(9000, 9002),
        amount=st.just(1),
    ),
    max_size=4,
)


@given(st.lists(some_claims, max_size=6), st.booleans())
def test_the_gate_lets_nothing_through_that_does_not_fit(
    batches: list[list[Claim]], unified: bool
) -> None:
    host = a_host(gpus=1, port_range=(9000, 9002), unified_memory=unified)
    world = World(a_fleet(host))
    for number, batch in enumerate(batches):
        if not gate(world.survey(), batch):
            world.hold(f"r{number}.v1", batch, pending=bool(number % 2))
        assert world.overcommitted() == []


def ports_of(seat: Seat) -> set[int]:
    return {seat.port, *(seat.links.ports if seat.links else ())}


@given(fleets, requests())
def test_claims_are_what_the_seats_say_and_all_replicas_have_theirs(
    fleet: FleetSnapshot, request: Request
) -> None:
    placement = placement_of(request, fleet)
    assert {seat.replica for seat in placement.seats} in (set(), set(range(request.spec.replicas)))
    for resource, parts in (
        (Resource.ACCELERATOR, [size for s in placement.seats for size in s.accelerator_bytes]),
        (Resource.RAM, [seat.ram_bytes for seat in placement.seats]),
        (Resource.CORES, [seat.cores for seat in placement.seats]),
        (Resource.PORT, [len(ports_of(seat)) for seat in placement.seats]),
    ):
        claimed = sum(c.amount for c in placement.claims if c.resource == resource)
        assert claimed == sum(parts)


@given(fleets, requests())
def test_the_same_input_gives_the_same_answer(fleet: FleetSnapshot, request: Request) -> None:
    again = FleetSnapshot.model_validate_json(fleet.model_dump_json())
    assert placement_of(request, fleet) == placement_of(changed(request), again)


@given(fleets, requests())
def test_a_placement_survives_the_journey_as_json(fleet: FleetSnapshot, request: Request) -> None:
    placement = placement_of(request, fleet)
    assert Placement.model_validate_json(placement.model_dump_json()) == placement


@given(fleets, requests())
def test_every_host_has_a_verdict_and_every_refusal_a_reason(
    fleet: FleetSnapshot, request: Request
) -> None:
    placement = placement_of(request, fleet)
    assert [verdict.host for verdict in placement.verdicts] == [host.name for host in fleet.hosts]
    assert all(verdict.detail for verdict in placement.verdicts)
    assert placement.fits or all(verdict.refusal for verdict in placement.verdicts)


@given(fleets, requests())
def test_a_refusal_about_numbers_has_numbers_that_refuse(
    fleet: FleetSnapshot, request: Request
) -> None:
    for verdict in placement_of(request, fleet).verdicts:
        if verdict.refusal in (Reason.ACCELERATOR_MEMORY, Reason.RAM, Reason.CORES):
            assert verdict.needed > verdict.available


@given(fleets, requests(), st.booleans())
def test_one_more_free_host_never_makes_a_model_homeless(
    fleet: FleetSnapshot, request: Request, first: bool
) -> None:
    more = a_host("new", port_range=PORTS)
    grown = a_fleet(more, *fleet.hosts) if first else a_fleet(*fleet.hosts, more)
    assert placement_of(request, grown).fits >= placement_of(request, fleet).fits


def passing(request: Request, fleet: FleetSnapshot, order: tuple[int, ...]) -> list[str]:
    """The hosts that pass the filters in this order."""
    views = views_of(fleet.hosts)
    filters, names = Filters(request, kinds_of(views)), []
    for view in views:
        try:
            for at in order:
                view = filters.checks[at](view)
        except Refusal:
            continue
        names.append(view.host.name)
    return names


@settings(max_examples=50)
@given(fleets, requests())
def test_the_order_of_the_filters_does_not_matter(fleet: FleetSnapshot, request: Request) -> None:
    checks = Filters(request, kinds_of(views_of(fleet.hosts))).checks
    orders = list(permutations(range(len(checks))))[:720]
    assert len({tuple(passing(request, fleet, order)) for order in orders}) == 1


drivers = st.sampled_from(["", "13.0", "11.0"])


@settings(max_examples=200)
@given(fleets, requests(), st.tuples(drivers, drivers, drivers, drivers))
def test_a_host_is_filtered_as_if_there_were_no_other(
    fleet: FleetSnapshot, request: Request, versions: tuple[str, ...]
) -> None:
    """What is worked out once for equal hosts holds for each of them."""
    views = []
    for host, version in zip(fleet.hosts, versions, strict=False):
        items = (one.model_copy(update={"runtime_version": version}) for one in host.accelerators)
        views.append(view_of(host.model_copy(update={"accelerators": tuple(items)})))
    together, alone = filter_hosts(request, views), [filter_hosts(request, [v]) for v in views]
    assert together[0] == [view for able, _ in alone for view in able]
    assert together[1] == {name: one for _, refused in alone for name, one in refused.items()}


@settings(max_examples=200)
@given(fleets, requests(), selections, st.booleans())
def test_a_manual_selection_is_obeyed_or_refused(
    fleet: FleetSnapshot, request: Request, selection: list[str], overcommit: bool
) -> None:
    wish = {"accelerators": tuple(selection), "overcommit": overcommit}
    spec = request.spec.model_copy(
        update={"engine": request.spec.engine.model_copy(update={"args": ()})}
    )
    request = changed(replace(request, subject=replace(request.subject, spec=spec)), **wish)
    seats = placement_of(request, fleet).seats
    for replica in {seat.replica for seat in seats}:
        taken = [
            f"{seat.host}:{seat.accelerator_type}:{index}"
            for seat in seats
            if seat.replica == replica
            for index in seat.accelerators
        ]
        assert sorted(taken) == sorted(selection)


@settings(max_examples=200)
@given(fleets, requests(hosts=2) | requests(across_hosts=True))
def test_hosts_that_run_a_replica_together_are_told_apart_and_meet_at_the_leader(
    fleet: FleetSnapshot, request: Request
) -> None:
    seats = placement_of(request, fleet).seats
    for replica in {seat.replica for seat in seats}:
        leader, *followers = (seat for seat in seats if seat.replica == replica)
        assert [seat.position for seat in followers] == list(range(1, len(followers) + 1))
        assert leader.role == Role.LEADER
        assert {seat.role for seat in followers} <= {Role.FOLLOWER}
        assert request.hosts in (0, 1 + len(followers))
        assert bool(followers) == bool(leader.links)
        for seat in followers:
            assert seat.links
            assert seat.links.own == seat.port
            assert (seat.links.master, seat.links.rpc, seat.links.joining) == (0, 0, 0)
            assert (seat.links.ray is None) == (request.joined_by != Distributed.RAY)
        if followers:
            group = (leader, *followers)
            assert "127.0.0.1" not in {fleet.host(seat.host).bind for seat in group}
            assert len({(seat.tensor, seat.pipeline, seat.tokens) for seat in group}) == 1


def room_on(fleet: FleetSnapshot, seat: Seat) -> list[tuple[int, int, int]]:
    """Free and total bytes of each accelerator of a seat, and what it claims there."""
    items = {item.index: item for item in fleet.host(seat.host).accelerators}
    pairs = zip(seat.accelerators, seat.accelerator_bytes, strict=True)
    return [(items[i].memory_free, items[i].memory_total, size) for i, size in pairs]


@given(fleets, requests())
def test_an_engine_finds_what_it_is_told_to_take(fleet: FleetSnapshot, request: Request) -> None:
    """Free memory after the driver's part is at least the share of the whole that vLLM asks for."""
    for seat in placement_of(request, fleet).seats:
        assert (seat.need is not None) == bool(seat.accelerators)
        for free, total, claim in room_on(fleet, seat):
            assert seat.need is not None
            share_bytes = ceil(total * seat.utilization)
            assert share_bytes + seat.need.outside <= claim <= free
            assert 0 < seat.utilization <= 1


@given(fleets, requests())
def test_a_replica_takes_as_many_accelerators_as_its_sizes_multiply_to(
    fleet: FleetSnapshot, request: Request
) -> None:
    seats = placement_of(request, fleet).seats
    for replica in {seat.replica for seat in seats}:
        own = [seat for seat in seats if seat.replica == replica and seat.accelerators]
        world = sum(len(seat.accelerators) for seat in own)
        if request.stated:
            assert world in (0, request.stated.world)
        elif own:
            assert world == own[0].tensor * own[0].pipeline
        assert len({seat.host for seat in own}) == len(own)


@given(fleets, requests())
def test_the_strategy_only_chooses_among_what_is_feasible(
    fleet: FleetSnapshot, request: Request
) -> None:
    one = request.spec.model_copy(update={"replicas": 1})
    request = replace(request, subject=replace(request.subject, spec=one))
    spread = placement_of(changed(request, strategy=Strategy.SPREAD), fleet)
    packed = placement_of(changed(request, strategy=Strategy.BINPACK), fleet)
    assert spread.fits == packed.fits
    assert sum(len(s.accelerators) for s in spread.seats) == sum(
        len(s.accelerators) for s in packed.seats
    )
    assert {seat.tokens for seat in spread.seats} == {seat.tokens for seat in packed.seats}


@given(fleets, requests(), st.integers(0, 99))
def test_a_seed_only_breaks_ties(fleet: FleetSnapshot, request: Request, seed: int) -> None:
    plain, seeded = placement_of(request, fleet), placement_of(changed(request, seed=seed), fleet)
    assert plain.fits == seeded.fits
    if request.spec.replicas > 1 or not plain.fits:
        return
    assert {seat.tokens for seat in plain.seats} == {seat.tokens for seat in seeded.seats}
    scores = [
        {v.host: round(v.score, 9) for v in one.verdicts}[one.seats[0].host]
        for one in (plain, seeded)
    ]
    assert scores[0] == scores[1]


@given(fleets, requests(policy=Policy.FITTED), st.integers(0, 3), st.integers(1, 60))
def test_more_free_memory_never_shortens_the_context(
    fleet: FleetSnapshot, request: Request, index: int, more: int
) -> None:
    """For as many accelerators on one host; where fewer will do, fewer are taken."""
    host = fleet.hosts[0]
    freer = host.model_copy(
        update={
            "ram_free": host.ram_total,
            "accelerators": tuple(
                item.model_copy(
                    update={"memory_free": min(item.memory_total, item.memory_free + more * GIB)}
                )
                if item.index == index
                else item
                for item in host.accelerators
            ),
        }
    )
    before, after = placement_of(request, a_fleet(host)), placement_of(request, a_fleet(freer))
    assert after.fits >= before.fits
    if before.fits and len(before.seats[0].accelerators) == len(after.seats[0].accelerators):
        assert after.seats[0].tokens >= before.seats[0].tokens


@given(fleets, requests())
def test_names_of_hosts_carry_no_weight(fleet: FleetSnapshot, request: Request) -> None:
    """Only their order breaks ties."""
    if request.listed_accelerators or request.spec.replicas > 1:
        return
    other = a_fleet(*(host.model_copy(update={"name": f"x{host.name}"}) for host in fleet.hosts))
    hosts = [seat.host for seat in placement_of(request, fleet).seats]
    assert set(hosts) <= set(NAMES)
    assert [seat.host for seat in placement_of(request, other).seats] == [f"x{h}" for h in hosts]
