from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB, KIB
from moorage.engines.vllm.engine import Vllm
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.demand import Split
from moorage.placement.many_hosts import Depths, shares, stages_over_hosts
from moorage.placement.placement import Placement
from moorage.placement.request import Request
from moorage.placement.role import Role
from moorage.placement.view import AcceleratorKind
from moorage.spec import Distributed, Strategy
from tests.builders import a_host, a_profile, a_spec, an_accelerator
from tests.placement.requests import StatedSizes, a_request, on_hosts


class Alone(Vllm):
    """vLLM as if one replica could not run on several hosts."""

    spans_hosts = False


def model(gib: int, *args: str, layers: int = 32, heads: int = 32, **placement: Any) -> Request:
    """A model of so many GiB that may span hosts; 128 KiB for each of up to 131,072 tokens.

    Ray joins them, for which hosts need not be equal.
    """

    def size(tokens: int, tensor: int, pipeline: int) -> int:
        if pipeline > layers:
            return 0
        return (gib * GIB + tokens * 128 * KIB) // (tensor * pipeline)

    engine = {"args": list(args), "distributed": "ray"}
    spec = a_spec(engine=engine, placement={"across_hosts": True, **placement})
    profile = a_profile(context=131_072, attention_heads=heads, layers=layers)
    return a_request(spec, profile, memory=StatedSizes(size, outside=GIB))


def host(name: str, *gib: int, total: int = 80, **changes: Any) -> HostSnapshot:
    """A host whose accelerators of 80 GiB have so much free."""
    items = tuple(an_accelerator(at, total, memory_free=free * GIB) for at, free in enumerate(gib))
    return a_host(name, accelerators=items, **{"bind": "10.0.0.7", **changes})


A, B, C, D = (host(name, *[80] * 4) for name in "abcd")
SMALL, TINY = host("small", 80, 80), host("tiny", 80)


def shape(placement: Placement) -> list[tuple[str, int]]:
    """Hosts in order, with the number of accelerators that are taken there."""
    return [(seat.host, len(seat.accelerators)) for seat in placement.seats]


@pytest.mark.parametrize(
    ("gib", "hosts", "taken", "split"),
    [
        # one host where it suffices
        (200, (A, B), [("a", 4)], (4, 1)),
        # equal shares: tensor-parallel within, pipeline-parallel across
        (400, (A, B), [("a", 4), ("b", 4)], (4, 2)),
        (400, (A, B, C, D), [("a", 4), ("b", 4)], (4, 2)),
        (800, (A, B, C, D), [("a", 4), ("b", 4), ("c", 4)], (4, 3)),
        # parts of hosts
        (130, (SMALL, TINY, host("t2", 80)), [("small", 2)], (2, 1)),
        (130, (TINY, host("t2", 80)), [("tiny", 1), ("t2", 1)], (1, 2)),
        (250, (host("x", 80, 80, 5), host("y", 80, 80, 9)), [("x", 2), ("y", 2)], (2, 2)),
        # unequal hosts: every accelerator is a stage
        (400, (A, SMALL), [("a", 4), ("small", 2)], (1, 6)),
        (330, (A, TINY), [("a", 4), ("tiny", 1)], (1, 5)),
        (330, (TINY, A), [("a", 4), ("tiny", 1)], (1, 5)),
        (330, (A, SMALL, TINY), [("a", 4), ("small", 1)], (1, 5)),
        (500, (A, SMALL, TINY), [("a", 4), ("small", 2), ("tiny", 1)], (1, 7)),
        # fewest hosts first
        (400, (TINY, SMALL, A), [("a", 4), ("small", 2)], (1, 6)),
        # full accelerators are left out
        (330, (host("x", 80, 80, 80, 80, 1), TINY), [("x", 4), ("tiny", 1)], (1, 5)),
    ],
)
def test_a_replica_takes_the_fewest_hosts_and_then_the_fewest_accelerators(
    gib: int,
    hosts: tuple[HostSnapshot, ...],
    taken: list[tuple[str, int]],
    split: tuple[int, int],
) -> None:
    placement = on_hosts(model(gib), *hosts)
    assert shape(placement) == taken
    assert {(seat.tensor, seat.pipeline) for seat in placement.seats} == {split}


def test_the_first_host_leads_and_all_claim_the_same() -> None:
    seats = on_hosts(model(400), A, B).seats
    assert [seat.role for seat in seats] == [Role.LEADER, Role.FOLLOWER]
    assert len({size for seat in seats for size in seat.accelerator_bytes}) == 1
    assert len({(seat.utilization, seat.tokens) for seat in seats}) == 1
    assert all(seat.port for seat in seats)


def at(site: str, host: HostSnapshot) -> HostSnapshot:
    return host.model_copy(update={"labels": {"site": site}})


@pytest.mark.parametrize(
    ("gib", "hosts", "taken"),
    [
        (400, (at("x", A), at("y", B), at("x", C)), ["a", "c"]),
        (400, (A, at("y", B), C), ["a", "c"]),
        (400, (at("x", A), at("y", B)), []),
        (800, (at("x", A), at("y", B), at("x", C), at("y", D)), []),
    ],
)
def test_one_replica_stays_at_one_site(
    gib: int, hosts: tuple[HostSnapshot, ...], taken: list[str]
) -> None:
    assert [seat.host for seat in on_hosts(model(gib), *hosts).seats] == taken


def test_hosts_whose_accelerators_hardly_differ_share_a_replica_in_proportion() -> None:
    less = tuple(
        item.model_copy(update={"memory_total": 79 * GIB + GIB // 2, "memory_free": 79 * GIB})
        for item in B.accelerators
    )
    other = B.model_copy(update={"accelerators": less})
    first, second = on_hosts(model(400), A, other).seats
    assert first.need
    assert second.need == first.need
    for seat, total in ((first, 80 * GIB), (second, less[0].memory_total)):
        taken = ceil(total * seat.utilization) + first.need.outside
        assert len(seat.accelerators) == 4
        assert set(seat.accelerator_bytes) == {seat.accelerator_bytes[0]}
        assert taken <= seat.accelerator_bytes[0] <= taken * 1.01
        assert seat.ram_bytes == 0


@pytest.mark.parametrize(
    ("placement", "engine"), [({"across_hosts": False}, Vllm()), ({}, Alone())]
)
def test_one_replica_stays_on_one_host_unless_user_and_engine_allow_more(
    placement: dict[str, Any], engine: Any
) -> None:
    request = model(400, **placement)
    request = a_request(request.spec, request.profile, engine, request.demand.memory)
    found = on_hosts(request, A, B)
    assert not found.fits
    assert {verdict.refusal for verdict in found.verdicts} == {Reason.ACCELERATOR_MEMORY}


def test_fewer_accelerators_than_hosts_are_no_lack_of_the_hosts() -> None:
    found = on_hosts(model(10, accelerators=1, hosts=2), A, B)
    assert [verdict.refusal for verdict in found.verdicts] == [Reason.NO_ACCELERATOR] * 2
    assert found.verdicts[0].note == "2 hosts need at least 2 accelerators, 1 requested"


@pytest.mark.parametrize(
    ("count", "hosts", "taken"),
    [
        (8, (A, B), [("a", 4), ("b", 4)]),
        (6, (A, B), [("a", 3), ("b", 3)]),
        (5, (A, B), [("a", 4), ("b", 1)]),
        (5, (A, TINY), [("a", 4), ("tiny", 1)]),
        (5, (A, TINY, B), [("a", 4), ("b", 1)]),
        (9, (A, B, C), [("a", 3), ("b", 3), ("c", 3)]),
        (10, (A, B, C), [("a", 4), ("b", 4), ("c", 2)]),
        (9, (A, B), []),
    ],
)
def test_a_wished_number_is_spread_exactly(
    count: int, hosts: tuple[HostSnapshot, ...], taken: list[tuple[str, int]]
) -> None:
    heads = 12  # divided by three ranks as well as by four
    placement = on_hosts(model(160, accelerators=count, heads=heads), *hosts)
    assert shape(placement) == taken


@pytest.mark.parametrize(
    ("args", "hosts", "taken"),
    [
        ("-tp 4 -pp 2", (A, B), [("a", 4), ("b", 4)]),
        ("-tp 8", (A, B), [("a", 4), ("b", 4)]),
        ("-pp 5", (A, TINY), [("a", 4), ("tiny", 1)]),
        ("-pp 6", (A, B), [("a", 3), ("b", 3)]),
        ("-tp 4 -dp 2", (A, B), [("a", 4), ("b", 4)]),
        ("-tp 2 -dp 2 -dpl 2", (A, B), [("a", 4)]),
        ("-tp 2 -dp 2 --data-parallel-size-local=1", (A, B), [("a", 2), ("b", 2)]),
        ("-tp 2 -dp 2 -dpl 1", (A,), []),
        # vLLM has no layout for two ranks of data parallelism in three halves
        ("-tp 2 -dp 3", (SMALL, host("s2", 80, 80)), []),
        ("-tp 5", (A, TINY), []),
        ("-tp 6", (A, SMALL), []),
    ],
)
def test_stated_sizes_are_laid_out_as_the_engine_can(
    args: str, hosts: tuple[HostSnapshot, ...], taken: list[tuple[str, int]]
) -> None:
    assert shape(on_hosts(model(100, args, heads=0), *hosts)) == taken


@pytest.mark.parametrize(
    ("args", "taken"),
    [
        ("-dp 6", [("a", 4), ("small", 2)]),
        ("-tp 2 -dp 3", [("a", 4), ("small", 2)]),
        ("-dp 5", [("a", 4), ("small", 1)]),
        ("-tp 4 -dp 2", []),
        ("-tp 6", []),
        ("-dp 6 -dpl 3", []),
    ],
)
def test_natively_joined_hosts_may_hold_unequal_numbers_of_copies(
    args: str, taken: list[tuple[str, int]]
) -> None:
    request = model(40, args, heads=0)
    request = replace(request, joined_by=Distributed.NATIVE)
    assert shape(on_hosts(request, SMALL, A)) == taken


def listed(*identities: str) -> list[str]:
    return [f"{one.split(':')[0]}:cuda:{one.split(':')[1]}" for one in identities]


@pytest.mark.parametrize(
    ("chosen", "taken"),
    [
        (["a:0", "b:3"], [("a", (0,)), ("b", (3,))]),
        (["a:0", "a:1", "b:2", "b:3"], [("a", (0, 1)), ("b", (2, 3))]),
        (["a:0", "a:1", "a:2", "b:3"], [("a", (0, 1, 2)), ("b", (3,))]),
        (["a:3", "b:0", "b:1", "c:2"], [("b", (0, 1)), ("a", (3,)), ("c", (2,))]),
        (["a:0", "x:0"], []),
        (["a:0", "b:9"], []),
    ],
)
def test_a_selection_over_hosts_is_taken_whole_or_not_at_all(
    chosen: list[str], taken: list[tuple[str, tuple[int, ...]]]
) -> None:
    placement = on_hosts(model(60, accelerators=listed(*chosen)), A, B, C)
    assert [(seat.host, seat.accelerators) for seat in placement.seats] == taken


def test_kinds_are_not_mixed_over_hosts() -> None:
    other = host("o", *[141] * 4, total=141)
    assert not on_hosts(model(570), A, other).fits
    assert shape(on_hosts(model(570), A, other, B)) == [("a", 4), ("b", 4)]
    assert not on_hosts(model(60, accelerators=listed("a:0", "o:0")), A, other).fits


@pytest.mark.parametrize(
    ("strategy", "hosts"),
    [(Strategy.SPREAD, ["roomy", "medium"]), (Strategy.BINPACK, ["tight", "medium"])],
)
def test_spread_takes_the_emptiest_hosts_and_binpack_the_fullest_that_hold_all(
    strategy: Strategy, hosts: list[str]
) -> None:
    fleet = (host("tight", 70, 70), host("roomy", 80, 80), host("medium", 75, 75))
    request = model(200, strategy=strategy)
    assert [seat.host for seat in on_hosts(request, *fleet).seats] == hosts


@pytest.mark.parametrize("strategy", list(Strategy))
def test_where_the_context_is_cut_the_emptiest_hosts_are_taken(strategy: Strategy) -> None:
    fleet = (host("tight", 70, 70), host("roomy", 80, 80), host("medium", 75, 75))
    placement = on_hosts(model(290, strategy=strategy), *fleet)
    assert [seat.host for seat in placement.seats] == ["roomy", "medium"]
    assert 8192 <= placement.seats[0].tokens < 131_072


@pytest.mark.parametrize("more", [A, host("e", *[80] * 8), TINY])
def test_another_free_host_does_not_spoil_a_pipeline(more: HostSnapshot) -> None:
    """A model of six layers has six stages at most, however many accelerators there are."""
    request = model(330, layers=6)
    for hosts in ((B, SMALL), (more, B, SMALL), (B, SMALL, more)):
        assert on_hosts(request, *hosts).fits


def test_each_host_that_takes_part_needs_a_port_and_ram() -> None:
    full = a_host("b", 4, port_range=(9000, 9000), ports_in_use=(9000,), bind="10.0.0.8")
    refused = on_hosts(model(400), A, full)
    assert [v.refusal for v in refused.verdicts] == [Reason.ACCELERATOR_MEMORY, Reason.PORT]
    poor = host("b", *[80] * 4, ram_free=4 * GIB)
    refused = on_hosts(model(400, ram="8GiB"), A, poor)
    assert [v.refusal for v in refused.verdicts] == [Reason.ACCELERATOR_MEMORY, Reason.RAM]
    seats = on_hosts(model(400, ram="8GiB"), A, B).seats
    assert [seat.ram_bytes for seat in seats] == [8 * GIB, 8 * GIB]


def test_replicas_over_hosts_do_not_get_into_each_others_way() -> None:
    request = model(400)
    spec = request.spec.model_copy(update={"replicas": 2})
    request = a_request(spec, request.profile, memory=request.demand.memory)
    assert shape(on_hosts(request, A, B, C, D)) == [("a", 4), ("b", 4), ("c", 4), ("d", 4)]
    assert not on_hosts(request, A, B, C).fits


ROOMS: list[list[int]] = [[80, 60, 20], [70], [], [60, 60]]


@pytest.mark.parametrize(
    ("count", "needed", "hosts"),
    [(1, 0, 3), (1, 61, 2), (2, 60, 2), (3, 20, 1), (3, 21, 0), (4, 0, 0), (0, 0, 0)],
)
def test_hosts_count_whose_accelerators_have_the_room(count: int, needed: int, hosts: int) -> None:
    assert Depths(ROOMS).hosts(count, needed) == hosts


def test_the_largest_host_and_all_accelerators_are_known() -> None:
    assert (Depths(ROOMS).most, Depths(ROOMS).accelerators) == (3, 6)
    assert (Depths([]).most, Depths([]).accelerators) == (0, 0)


rooms = st.lists(st.lists(st.integers(0, 9), max_size=4).map(lambda r: sorted(r, reverse=True)))


@given(rooms, st.integers(1, 5), st.integers(0, 9))
def test_the_answer_is_that_of_asking_every_host(
    rooms: list[list[int]], count: int, needed: int
) -> None:
    able = [room for room in rooms if len(room) >= count and room[count - 1] >= needed]
    assert Depths(rooms).hosts(count, needed) == len(able)


KIND = AcceleratorKind("cuda", "x", 80 * GIB)


@pytest.mark.parametrize(
    ("world", "able", "hosts", "taken"),
    [
        (5, [4, 4], 2, [4, 1]),
        (6, [4, 2], 2, [4, 2]),
        (2, [4, 4], 2, [1, 1]),
        (9, [4, 4, 4], 3, [4, 4, 1]),
        (5, [4, 4, 4], 3, [3, 1, 1]),
    ],
)
def test_hosts_take_as_many_stages_as_they_can_and_at_least_one(
    world: int, able: list[int], hosts: int, taken: list[int]
) -> None:
    assert shares(world, able, hosts) == taken


@given(
    st.lists(st.lists(st.sampled_from([0, 20, 40, 80]), max_size=4), max_size=5),
    st.integers(10, 600),
)
def test_the_fewest_hosts_for_each_pipeline_are_found(rooms: list[list[int]], gib: int) -> None:
    """Against counting: the hosts with most accelerators that have the room."""
    request = a_request(
        profile=a_profile(layers=12), memory=StatedSizes(lambda _, t, p: gib * GIB // (t * p))
    )
    sizes = [sorted((left * GIB for left in room), reverse=True) for room in rooms]
    found = stages_over_hosts(request, KIND, Depths(sizes))
    for hosts, world in found.items():
        least = request.demand.least(KIND, Split(pipeline=world))
        assert not isinstance(least, Refusal)
        able = [sum(left >= least.bytes for left in room) for room in sizes]
        able.sort(reverse=True)
        taken = shares(world, able, hosts)
        assert len(taken) == hosts >= 2
        assert sum(taken) == world <= 12
        assert all(0 < share <= there for share, there in zip(taken, able, strict=False))
        assert hosts == 2 or sum(able[: hosts - 1]) < world
    if not found:
        for world in range(2, 13):
            needed = gib * GIB / world
            able = [sum(left > needed * 1.01 + 80 * GIB // 500 for left in r) for r in sizes]
            assert sum(able) < world or sum(each > 0 for each in able) < 2
