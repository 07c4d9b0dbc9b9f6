from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from moorage.common.units import GIB, KIB
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.memory.demand import memory_model
from moorage.models.profile import derive_profile
from moorage.placement.demand import Allocation, Split
from moorage.placement.memory import exact_or_estimated
from moorage.placement.request import Request
from moorage.placement.strategies import one_host
from moorage.spec import EngineName
from tests.builders import a_claim, a_host, a_model, a_profile, a_spec, an_accelerator
from tests.memory.models import known
from tests.placement.requests import StatedSizes, a_request, on_hosts, views

LONG = a_profile(context=131_072)


def model(gib: float, **spec: Any) -> Request:
    """A model of so many GiB, spread over its ranks, and 128 KiB for each token."""
    memory = StatedSizes(lambda tokens, t, p: int(gib * GIB + tokens * 128 * KIB) // (t * p))
    return a_request(a_spec(**spec), LONG, memory=memory)


def by_rules(name: str, engine: str, args: str) -> Request:
    """A model of the conformance data, whose memory follows the engine's rules."""
    config, headers = known(name)
    spec = a_spec(engine={"name": engine, "args": [args]}, context=8192)
    model = a_model(config=config, headers=headers)
    profile = derive_profile(spec, model)
    memory = partial(exact_or_estimated, memory_model(spec, model, profile).need, profile, 0)
    return a_request(spec, profile, ENGINES[EngineName(engine)], memory)


def on(strategy: str) -> dict[str, Any]:
    return {"strategy": strategy}


def rooms(*gib: int, name: str = "gpu-1", **changes: Any) -> HostSnapshot:
    """A host whose accelerators of 80 GiB have so much free."""
    items = tuple(an_accelerator(at, memory_free=free * GIB) for at, free in enumerate(gib))
    return a_host(name, accelerators=items, **changes)


def offered(request: Request, *hosts: HostSnapshot) -> list[tuple[str, list[int], bool]]:
    """By offer the host, the room in GiB of what would be taken, and whether all of it fits."""
    return [
        (
            candidate.views[0].host.name,
            [left // GIB for left in candidate.rooms[0]],
            candidate.is_full,
        )
        for candidate in one_host(request, views(*hosts))
    ]


@pytest.mark.parametrize(
    ("engine", "args", "fits"),
    [
        ("vllm", "--data-parallel-size 8 --enable-expert-parallel", True),
        ("vllm", "-tp 2 -dp 4", True),
        ("sglang", "--tensor-parallel-size 8", True),
        # These copies are whole.
        ("sglang", "--data-parallel-size 8", False),
    ],
)
def test_copies_that_divide_the_experts_fit_where_whole_ones_do_not(
    engine: str, args: str, fits: bool
) -> None:
    items = tuple(an_accelerator(at, 141, name="NVIDIA H200") for at in range(8))
    request = by_rules("deepseek-v3", engine, args)
    assert bool(offered(request, a_host(accelerators=items))) is fits


@pytest.mark.parametrize(
    ("args", "count"),
    [
        ("--enable-eplb", 1),
        ("--decode-context-parallel-size 2", 2),
        ("--enable-eplb --enable-expert-parallel", 0),
    ],
)
def test_an_option_without_a_rule_hides_no_refusal_of_the_engine(args: str, count: int) -> None:
    found = offered(by_rules("qwen3-8b", "vllm", args), rooms(80, 80))
    assert [len(room) for _, room, _ in found] == [count] * bool(count)


@pytest.mark.parametrize(
    ("weights", "free", "taken", "full"),
    [
        (10, (80, 80), [80], True),
        (10, (20, 80), [80], True),
        (10, (20, 20), [20], False),
        (10, (11, 10), [11, 10], False),
        (40, (30, 80), [80], True),
        (40, (30, 30), [30, 30], True),
        (40, (30, 21), [30, 21], False),
        (100, (60, 60, 20, 60), [60, 60], True),
        (100, (52, 60, 20, 52), [60, 52], False),
        (100, (50, 50, 50, 50), [50, 50, 50, 50], True),
    ],
)
def test_the_fewest_accelerators_that_hold_the_least_context_are_offered(
    weights: int, free: tuple[int, ...], taken: list[int], full: bool
) -> None:
    assert offered(model(weights), rooms(*free)) == [("gpu-1", taken, full)]


@pytest.mark.parametrize("count", [1, 2])
def test_a_model_just_at_the_room_fits_and_one_byte_more_does_not(count: int) -> None:
    """The same comparison, at least as much, for one accelerator and for several."""
    request = model(10, placement={"accelerators": count})
    needed = request.demand.least(next(iter(views(rooms(80))[0].groups)), Split(tensor=count))
    assert isinstance(needed, Allocation)
    for off in (0, 1):
        items = [an_accelerator(at, memory_free=needed.bytes - off) for at in range(count)]
        assert bool(offered(request, a_host(accelerators=tuple(items)))) is (off == 0)


@pytest.mark.parametrize(
    ("strategy", "weights", "taken"),
    [
        ("spread", 5, [80]),
        ("binpack", 5, [25]),
        ("binpack", 10, [30]),
        ("spread", 50, [80]),
        ("binpack", 50, [70]),
    ],
)
def test_spread_offers_the_emptiest_accelerator_and_binpack_the_fullest_that_holds_all(
    strategy: str, weights: int, taken: list[int]
) -> None:
    host = rooms(80, 30, 70, 25)
    assert offered(model(weights, placement=on(strategy)), host)[0][1] == taken


@pytest.mark.parametrize("strategy", ["spread", "binpack"])
def test_where_the_context_is_cut_the_emptiest_is_offered_whatever_the_strategy(
    strategy: str,
) -> None:
    assert offered(model(10, placement=on(strategy)), rooms(12, 20, 15)) == [("gpu-1", [20], False)]


def test_kinds_on_one_host_are_offered_apart() -> None:
    items = (an_accelerator(0, 24), an_accelerator(1), an_accelerator(2, 24), an_accelerator(3))
    candidates = one_host(model(1), views(a_host(accelerators=items)))
    assert [(candidate.kind and candidate.kind.total // GIB) for candidate in candidates] == [
        24,
        80,
    ]
    assert offered(model(150), a_host(accelerators=items)) == [("gpu-1", [80, 80], False)]


def test_claims_count_whether_they_are_used_or_not() -> None:
    claims = (a_claim(Resource.ACCELERATOR, 60 * GIB),)
    pending = (replace(claims[0], pending=True),)
    assert offered(model(10), rooms(20, claims=claims)) == [("gpu-1", [20], False)]
    assert offered(model(10), rooms(80, claims=pending)) == [("gpu-1", [20], False)]
    assert offered(model(10), rooms(20, claims=pending)) == []


SPARK: dict[str, Any] = {"unified_memory": True, "ram_total": 128 * GIB, "ram_free": 128 * GIB}


@pytest.mark.parametrize(
    ("ram", "left"), [("auto", 80), ("40GiB", 80), ("60GiB", 68), ("115GiB", 13)]
)
def test_memory_that_is_shared_is_offered_without_the_ram_that_is_taken_with_it(
    ram: str, left: int
) -> None:
    request = model(10, placement={"ram": ram})
    assert offered(request, rooms(80, **SPARK))[0][1] == [left]
    assert on_hosts(request, rooms(80, **SPARK)).fits


def test_several_accelerators_of_one_pool_share_it() -> None:
    request = model(100, placement={"accelerators": 2})
    assert offered(request, rooms(80, 80, **SPARK)) == [("gpu-1", [64, 64], True)]


def test_two_small_models_share_an_accelerator() -> None:
    first = on_hosts(model(20), rooms(80)).seats[0]
    claims = tuple(replace(claim, release="one.v1") for claim in first.claims)
    second = on_hosts(model(20), rooms(80, claims=claims)).seats[0]
    assert first.accelerators == second.accelerators == (0,)
    assert first.accelerator_bytes[0] + second.accelerator_bytes[0] <= 80 * GIB
    assert first.port != second.port
