from __future__ import annotations

from typing import Any

import pytest

from moorage.common.refusal import Reason
from moorage.common.units import GIB, KIB
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.explanation import Verdict
from moorage.placement.request import Request
from tests.builders import a_claim, a_cpu_host, a_host, a_profile, a_spec, an_accelerator
from tests.placement.requests import StatedSizes, a_request, on_hosts


def model(gib: int, *args: str, heads: int = 32, **placement: Any) -> Request:
    """A model of so many GiB, and 128 KiB for each of up to 131,072 tokens."""
    memory = StatedSizes(
        lambda tokens, t, p: (gib * GIB + tokens * 128 * KIB) // (t * p), outside=GIB
    )
    spec = a_spec(engine={"args": list(args)}, placement=placement)
    profile = a_profile(context=131_072, attention_heads=heads)
    return a_request(spec, profile, memory=memory)


def host(name: str, *free: int, total: int = 80, **changes: Any) -> HostSnapshot:
    items = (an_accelerator(at, total, memory_free=gib * GIB) for at, gib in enumerate(free))
    return a_host(name, accelerators=tuple(items), **changes)


def verdict(request: Request, *hosts: HostSnapshot, at: int = 0) -> Verdict:
    return on_hosts(request, *hosts).verdicts[at]


def gib(size: int) -> int:
    return round(size / GIB)


@pytest.mark.parametrize(
    ("weights", "free", "numbers"),
    [
        # needed, available, on each of how many, of how many
        (100, (80,), (102, 80, 1, 1)),
        (100, (40, 40), (52, 40, 2, 2)),
        (100, (80, 40), (52, 40, 2, 2)),
        (100, (80, 20), (102, 80, 1, 2)),
        (100, (50, 50, 0, 0), (52, 50, 2, 4)),
        (400, (80, 80, 80, 80), (101, 80, 4, 4)),
    ],
)
def test_a_host_is_measured_against_the_shape_that_it_misses_by_the_least(
    weights: int, free: tuple[int, ...], numbers: tuple[int, int, int, int]
) -> None:
    found = verdict(model(weights), host("a", *free))
    assert found.refusal == Reason.ACCELERATOR_MEMORY
    assert (gib(found.needed), gib(found.available), found.count, found.there) == numbers


def test_of_several_kinds_the_nearest_miss_is_told() -> None:
    mixed = a_host(accelerators=(an_accelerator(0, 24), an_accelerator(1, 80)))
    found = verdict(model(90), mixed)
    assert (gib(found.needed), gib(found.available), found.there) == (92, 80, 1)


def test_where_others_serve_the_whole_context_it_is_what_was_missing() -> None:
    """17 GiB would do for the least, but a host on which all fits is never passed over."""
    found = verdict(model(15), host("a", 20), host("b", 80))
    assert found.refusal == Reason.ACCELERATOR_MEMORY
    assert (gib(found.needed), gib(found.available)) == (32, 20)


def test_where_others_serve_with_two_a_host_of_two_is_measured_with_two() -> None:
    found = verdict(model(100), host("a", 30, 30), host("b", 80, 80))
    assert (gib(found.needed), found.count) == (59, 2)
    found = verdict(model(100), host("a", 30), host("b", 80, 80))
    assert (gib(found.needed), found.count) == (102, 1)


def test_a_host_that_is_no_part_of_a_pipeline_tells_what_it_lacks_alone() -> None:
    hosts = (host(name, size) for name, size in (("a", 80), ("b", 80), ("c", 40)))
    reached = (one.model_copy(update={"bind": f"10.0.0.{at}"}) for at, one in enumerate(hosts))
    placement = on_hosts(model(150, across_hosts=True), *reached)
    assert placement.fits
    assert placement.verdicts[2].needed > placement.verdicts[2].available


@pytest.mark.parametrize(
    ("request_", "refusal", "note"),
    [
        (model(70, heads=25), Reason.ACCELERATOR_MEMORY, ""),
        (model(90, heads=25), Reason.PARALLELISM, "4 do not divide 25 attention heads"),
        (model(10, "-tp 3"), Reason.PARALLELISM, "3 do not divide 32 attention heads"),
        (
            model(10, "--gpu-memory-utilization 0.1", accelerators=1),
            Reason.ENGINE,
            "--gpu-memory-utilization 0.1 is too small: 8192 tokens take 0.138",
        ),
        (
            a_request(memory=StatedSizes(lambda *_: 0)),
            Reason.ENGINE,
            "the engine would not start",
        ),
    ],
    ids=["too full", "odd heads", "stated", "share", "engine"],
)
def test_what_no_memory_would_mend_is_named_for_what_it_is(
    request_: Request, refusal: Reason, note: str
) -> None:
    found = verdict(request_, host("a", 60, 60, 60, 60))
    assert found.refusal == refusal
    assert note in found.note


def test_the_holders_are_named_and_when_many_counted() -> None:
    claims = tuple(
        a_claim(Resource.ACCELERATOR, 10 * GIB, host="a", release=f"m{at}.v1") for at in range(8)
    )
    found = verdict(model(20), host("a", 0, claims=claims))
    assert found.held_by == tuple(f"m{at}.v1" for at in range(8))
    assert found.detail.endswith("held by m0.v1, m1.v1, m2.v1, m3.v1 and 4 more")


def test_a_host_without_accelerators_is_passed_over_or_short_of_ram() -> None:
    request = a_request(engine=None)
    both = on_hosts(request, a_host(), a_cpu_host("c", runtimes=("docker",)))
    assert both.verdicts[1].refusal == Reason.NO_ACCELERATOR
    assert both.verdicts[1].note == "accelerators are preferred"
    poor = on_hosts(request, a_host(), a_cpu_host("c", runtimes=("docker",), ram_free=GIB))
    assert poor.verdicts[1].refusal == Reason.RAM


def test_too_few_alike_are_counted() -> None:
    found = verdict(model(10, accelerators=3), a_host(gpus=2))
    assert found.refusal == Reason.NO_ACCELERATOR
    assert found.detail == ("3 accelerators requested, 2 x NVIDIA H100 80GB HBM3 (80.0 GiB) there")


def test_memory_that_is_shared_with_ram_is_told_as_what_is_left_of_it() -> None:
    spark = host("a", 80, unified_memory=True, ram_free=100 * GIB)
    found = verdict(model(60, ram="50GiB"), spark)
    assert (gib(found.needed), gib(found.available)) == (62, 50)


def test_an_accelerator_that_hides_its_memory_is_not_used() -> None:
    (found,) = on_hosts(
        model(10, accelerators=1), a_host(accelerators=(an_accelerator(0, 0),))
    ).verdicts
    assert found.refusal == Reason.NO_ACCELERATOR
    mixed = a_host(accelerators=(an_accelerator(0, 0), an_accelerator(1)))
    assert on_hosts(model(10), mixed).seats[0].accelerators == (1,)
