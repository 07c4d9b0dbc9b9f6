from __future__ import annotations

from typing import Any

import pytest

from moorage.common.refusal import Reason
from moorage.common.units import GIB
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.explanation import Verdict, explain, rows
from moorage.placement.placement import CPU, Placement
from moorage.spec import EngineName, RuntimeName
from tests.builders import (
    ON_CPU,
    a_claim,
    a_cpu_host,
    a_host,
    a_profile,
    a_spec,
    an_accelerator,
    placed,
)

SHARE = 72 * GIB


def busy(index: int = 0, release: str = "other.v1", host: str = "gpu-1") -> Any:
    return a_claim(Resource.ACCELERATOR, SHARE, index, release=release, host=host)


def on(count: int | list[str], **changes: Any) -> Any:
    return a_spec(placement={"accelerators": count, **changes})


def only(placement: Placement) -> Verdict:
    (verdict,) = placement.verdicts
    return verdict


@pytest.mark.parametrize(
    ("weights", "there", "taken"),
    [
        (8, 1, (0,)),
        (8, 4, (0,)),
        (62, 2, (0,)),
        (63, 2, (0, 1)),
        (140, 4, (0, 1, 2)),
        (230, 4, (0, 1, 2, 3)),
    ],
)
def test_as_few_gpus_are_taken_as_hold_the_model(
    weights: int, there: int, taken: tuple[int, ...]
) -> None:
    profile = a_profile(weight_bytes=weights * GIB, attention_heads=24)
    (seat,) = placed(a_spec(), a_host(gpus=there), profile=profile).seats
    assert seat.accelerators == taken
    assert (seat.accelerator_type, seat.tensor, seat.port) == ("cuda", len(taken), 40000)


def test_a_count_that_does_not_divide_the_heads_is_skipped() -> None:
    profile = a_profile(weight_bytes=140 * GIB, attention_heads=32)
    (seat,) = placed(a_spec(), a_host(gpus=4), profile=profile).seats
    assert len(seat.accelerators) == 4


def test_any_count_will_do_where_the_heads_are_unknown() -> None:
    profile = a_profile(weight_bytes=140 * GIB, attention_heads=None)
    (seat,) = placed(a_spec(), a_host(gpus=4), profile=profile).seats
    assert len(seat.accelerators) == 3


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_wished_number_of_gpus_is_taken(count: int) -> None:
    (seat,) = placed(on(count), a_host(gpus=4)).seats
    assert seat.accelerators == tuple(range(count))


def test_the_gpus_that_are_free_are_taken_in_index_order() -> None:
    host = a_host(gpus=4, claims=(busy(0), busy(2)))
    (seat,) = placed(on(2), host).seats
    assert seat.accelerators == (1, 3)


@pytest.mark.parametrize("chosen", [["gpu-1:cuda:1"], ["gpu-1:cuda:3", "gpu-1:cuda:0"]])
def test_a_manual_selection_is_obeyed(chosen: list[str]) -> None:
    placement = placed(on(chosen), a_cpu_host(), a_host(gpus=4))
    (seat,) = placement.seats
    assert [f"{seat.host}:{seat.accelerator_type}:{i}" for i in seat.accelerators] == sorted(chosen)
    assert placement.verdicts[0].refusal == Reason.NOT_SELECTED


AMD = an_accelerator(2, type="rocm")
TPU = an_accelerator(0, type="tpu")


@pytest.mark.parametrize(
    ("spec", "host", "refusal", "detail"),
    [
        (a_spec(), a_host(unreachable="no route"), Reason.UNREACHABLE, "no route"),
        (
            on(1, host_labels={"zone": "a", "disk": "nvme"}),
            a_host(labels={"zone": "b", "disk": "nvme"}),
            Reason.LABELS,
            "lacks zone=a",
        ),
        (on(["gpu-2:cuda:0"]), a_host(), Reason.NOT_SELECTED, "the spec selects gpu-2"),
        (on(["gpu-1:cuda:7"]), a_host(), Reason.NO_ACCELERATOR, "cuda:7 is not there"),
        (
            on(["gpu-1:cuda:0", "gpu-2:cuda:0"]),
            a_host(),
            Reason.ONE_HOST_ONLY,
            "accelerators of 2 hosts are selected",
        ),
        (
            on(["gpu-1:cuda:0", "gpu-1:rocm:2"]),
            a_host(accelerators=(an_accelerator(), AMD)),
            Reason.MIXED_TYPES,
            "of several types",
        ),
        (on(1), a_cpu_host(), Reason.NO_ACCELERATOR, "vllm can use none of what is there"),
        (on(1), a_host(accelerators=(TPU,)), Reason.NO_ACCELERATOR, "the host has tpu:0"),
        (on(4), a_host(gpus=2), Reason.NO_ACCELERATOR, "4 accelerators requested, 2 x"),
        (a_spec(), a_host(runtimes=()), Reason.ENGINE, "not available on this host"),
        (a_spec(), a_cpu_host(), Reason.ENGINE, "vllm is not installed"),
        (on(3), a_host(gpus=4), Reason.PARALLELISM, "32 attention heads"),
        (
            on(["gpu-1:cuda:0", "gpu-1:cuda:1", "gpu-1:cuda:2"]),
            a_host(gpus=4),
            Reason.PARALLELISM,
            "32 attention heads",
        ),
        (
            on(1),
            a_host(claims=(busy(0), busy(1, "third.v2"))),
            Reason.ACCELERATOR_MEMORY,
            "held by other.v1, third.v2",
        ),
        (
            on(2),
            a_host(claims=(busy(0),)),
            Reason.ACCELERATOR_MEMORY,
            "on each of 2 (of 2)",
        ),
        (
            on(["gpu-1:cuda:0"]),
            a_host(claims=(busy(0),)),
            Reason.ACCELERATOR_MEMORY,
            "held by other.v1",
        ),
        (on(0, ram="200GiB"), a_host(), Reason.RAM, "200.0 GiB needed, 128.0 GiB available"),
        (on(1, ram="200GiB"), a_host(), Reason.RAM, "200.0 GiB needed"),
        (
            a_spec(port=8000),
            a_host(ports_in_use=(8000,)),
            Reason.PORT,
            "something else listens there",
        ),
        (
            a_spec(port=8000),
            a_host(claims=(a_claim(Resource.PORT, 1, 8000),)),
            Reason.PORT,
            "held by other.v1",
        ),
        (
            a_spec(),
            a_host(port_range=(9000, 9000), ports_in_use=(9000,)),
            Reason.PORT,
            "every port of 9000-9000 is taken",
        ),
    ],
    ids=lambda value: value if isinstance(value, Reason) else "",
)
def test_a_host_is_refused_with_a_named_reason(
    spec: Any, host: HostSnapshot, refusal: Reason, detail: str
) -> None:
    placement = placed(spec, host)
    assert not placement.fits
    assert only(placement).refusal == refusal
    assert detail in only(placement).detail


def test_a_refusal_for_memory_tells_what_was_needed_and_what_there_was() -> None:
    verdict = only(placed(a_spec(), a_host(), profile=a_profile(weight_bytes=500 * GIB)))
    assert verdict.refusal == Reason.ACCELERATOR_MEMORY
    assert (verdict.available, verdict.count, verdict.there) == (80 * GIB, 2, 2)
    assert 302 * GIB < verdict.needed < 306 * GIB


def test_several_gpus_that_do_not_divide_the_heads_are_refused_for_that() -> None:
    profile = a_profile(weight_bytes=70 * GIB, attention_heads=25)
    verdict = only(placed(a_spec(), a_host(gpus=2), profile=profile))
    assert verdict.refusal == Reason.PARALLELISM
    assert "25 attention heads" in verdict.detail


@pytest.mark.parametrize(
    ("wanted", "refusal"),
    [(2, Reason.NO_ACCELERATOR), (["gpu-1:cuda:0", "gpu-1:cuda:1"], Reason.MIXED_TYPES)],
)
def test_gpus_of_different_sizes_are_not_taken_together(wanted: Any, refusal: Reason) -> None:
    host = a_host(accelerators=(an_accelerator(), an_accelerator(1, gib=24)))
    assert only(placed(on(wanted), host)).refusal == refusal


def test_of_two_types_on_one_host_the_one_that_fits_is_taken() -> None:
    small = tuple(an_accelerator(index, gib=8) for index in range(2))
    host = a_host(accelerators=(*small, AMD))
    (seat,) = placed(a_spec(), host, profile=a_profile(weight_bytes=40 * GIB)).seats
    assert (seat.accelerator_type, seat.accelerators) == ("rocm", (2,))


@pytest.mark.parametrize("wish", [{}, ON_CPU], ids=str)
def test_without_gpus_the_model_is_placed_on_cpu(wish: dict[str, Any]) -> None:
    placement = placed(a_spec(placement=wish), a_cpu_host(), engine=EngineName.TRANSFORMERS)
    (seat,) = placement.seats
    assert (seat.accelerator_type, seat.accelerators) == (CPU, ())
    assert 8 * GIB < seat.ram_bytes < 16 * GIB


def test_gpus_are_left_alone_where_none_are_asked_for() -> None:
    (seat,) = placed(on(0), a_host()).seats
    assert seat.accelerator_type == CPU


@pytest.mark.parametrize(("gpus", "auto"), [(0, None), (1, 0)])
def test_ram_is_what_the_spec_says(gpus: int, auto: int | None) -> None:
    (seat,) = placed(on(gpus, ram="16GiB"), a_host()).seats
    assert seat.ram_bytes == 16 * GIB
    (seat,) = placed(on(gpus), a_host()).seats
    assert auto is None or seat.ram_bytes == auto


HOSTS = (a_host("gpu-1"), a_host("gpu-2"), a_host("gpu-3"))
HALF = a_host("gpu-2", claims=(busy(host="gpu-2"),))


@pytest.mark.parametrize(
    ("strategy", "hosts", "chosen"),
    [
        ("spread", HOSTS, "gpu-1"),
        ("spread", (HALF, a_host("gpu-3")), "gpu-3"),
        ("binpack", HOSTS, "gpu-1"),
        ("binpack", (a_host("gpu-1"), HALF, a_host("gpu-3")), "gpu-2"),
    ],
)
def test_spread_prefers_the_emptiest_host_and_binpack_the_fullest(
    strategy: str, hosts: tuple[HostSnapshot, ...], chosen: str
) -> None:
    (seat,) = placed(on(1, strategy=strategy), *hosts).seats
    assert seat.host == chosen


@pytest.mark.parametrize(
    ("strategy", "seats"),
    [
        ("spread", [("gpu-1", 0), ("gpu-2", 0), ("gpu-3", 0), ("gpu-1", 1)]),
        ("binpack", [("gpu-1", 0), ("gpu-1", 0), ("gpu-1", 0), ("gpu-1", 0)]),
    ],
)
def test_replicas_follow_the_strategy(strategy: str, seats: list[tuple[str, int]]) -> None:
    spec = a_spec(replicas=4, placement={"accelerators": 1, "strategy": strategy})
    placement = placed(spec, *HOSTS)
    assert [(seat.host, *seat.accelerators) for seat in placement.seats] == seats
    assert [seat.replica for seat in placement.seats] == [0, 1, 2, 3]


def test_replicas_on_one_host_get_ports_of_their_own() -> None:
    placement = placed(a_spec(replicas=3, placement=ON_CPU), a_host())
    assert [seat.port for seat in placement.seats] == [40000, 40001, 40002]


def test_a_fixed_port_allows_one_replica_per_host() -> None:
    spec = a_spec(replicas=2, port=8000, placement={**ON_CPU, "strategy": "binpack"})
    assert [seat.host for seat in placed(spec, *HOSTS).seats] == ["gpu-1", "gpu-2"]
    refused = placed(spec, a_host())
    assert not refused.fits
    assert only(refused).refusal == Reason.PORT


ONE_H100 = (an_accelerator(),)
MI300S = tuple(an_accelerator(index, type="rocm", name="MI300X") for index in range(2))
OWN_IMAGE = {"name": "vllm", "image": "acme/vllm:1"}


@pytest.mark.parametrize(
    ("engine", "gib", "amd", "hosts"),
    [
        ("vllm", 8, 2, "nvidia nvidia"),
        ("vllm", 60, 2, "amd amd"),
        ("vllm", 60, 1, ""),
        (OWN_IMAGE, 60, 1, "nvidia amd"),
    ],
)
def test_replicas_share_an_image_so_they_are_placed_on_one_type_of_accelerator(
    engine: Any, gib: int, amd: int, hosts: str
) -> None:
    spec = a_spec(engine=engine, replicas=2, placement={"accelerators": 1})
    nvidia = a_host("nvidia", accelerators=ONE_H100)
    placement = placed(
        spec,
        nvidia,
        a_host("amd", accelerators=MI300S[:amd]),
        a_cpu_host("no-gpu", runtimes=(RuntimeName.DOCKER,)),
        profile=a_profile(weight_bytes=gib * GIB),
    )
    assert " ".join(seat.host for seat in placement.seats) == hosts


def test_either_all_replicas_are_placed_or_none() -> None:
    profile = a_profile(weight_bytes=40 * GIB)
    placement = placed(a_spec(replicas=5), *HOSTS[:2], profile=profile)
    assert placement.seats == ()
    assert placement.claims == ()
    assert {verdict.refusal for verdict in placement.verdicts} == {Reason.ACCELERATOR_MEMORY}


def test_the_explanation_has_a_line_for_every_refused_host() -> None:
    hosts = (a_host("gpu-1", unreachable="no route"), a_cpu_host(), a_host("gpu-2"))
    placement = placed(on(1), *hosts)
    assert explain(placement.verdicts).splitlines() == [
        "2 of 3 hosts refused: 1 unreachable, 1 no-such-accelerator",
        "gpu-1: unreachable: no route",
        "cpu-1: no-such-accelerator: vllm can use none of what is there: the host has no"
        " accelerators",
    ]
    shown = rows(placement.verdicts, placement.terms, {"gpu-2"})
    assert [outcome for _, outcome, _ in shown] == ["taken", "unreachable", "no-such-accelerator"]
    assert "apart 40.0" in shown[0][2]


def test_the_verdicts_stand_in_the_order_of_the_fleet() -> None:
    placement = placed(on(1), *reversed(HOSTS))
    assert [verdict.host for verdict in placement.verdicts] == ["gpu-3", "gpu-2", "gpu-1"]


def test_replicas_share_what_is_really_free_not_what_is_unclaimed() -> None:
    half_used = a_host(ram_free=20 * GIB)
    two = a_spec(replicas=2, placement={**ON_CPU, "ram": "12GiB"})
    assert not placed(two, half_used).fits
    assert placed(a_spec(placement={**ON_CPU, "ram": "12GiB"}), half_used).fits
