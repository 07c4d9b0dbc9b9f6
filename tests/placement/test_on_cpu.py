from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moorage.common.refusal import Reason
from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.memory.demand import MemoryModel
from moorage.memory.stated_options import memory_options
from moorage.placement.demand import Subject
from moorage.placement.placement import CPU
from moorage.placement.request import Request, request_for
from moorage.spec import EngineName
from tests.builders import a_claim, a_cpu_host, a_host, a_profile, a_spec, an_accelerator
from tests.memory.models import known
from tests.placement.requests import a_request, on_hosts

TRANSFORMERS = ENGINES[EngineName.TRANSFORMERS]


def wish(**changes: Any) -> Request:
    placement = {"accelerators": 0, "ram": "12GiB", **changes.pop("placement", {})}
    return a_request(a_spec(placement=placement, **changes), engine=TRANSFORMERS)


def cpu(name: str = "cpu-1", **changes: Any) -> HostSnapshot:
    return a_cpu_host(name, **{"cpus": 8, "ram_total": 32 * GIB, "ram_free": 32 * GIB, **changes})


def ram(gib: int, **changes: Any) -> Any:
    claim = a_claim(Resource.RAM, gib * GIB, host="cpu-1")
    return replace(claim, **changes)


def cores(number: int) -> Any:
    return a_claim(Resource.CORES, number, host="cpu-1")


@pytest.mark.parametrize(
    ("host", "refusal", "needed", "available"),
    [
        (cpu(), None, 0, 0),
        (cpu(ram_free=12 * GIB), None, 0, 0),
        (cpu(ram_free=11 * GIB), Reason.RAM, 12 * GIB, 11 * GIB),
        (cpu(ram_reserve=21 * GIB), Reason.RAM, 12 * GIB, 11 * GIB),
        (cpu(claims=(ram(20, pending=True),)), None, 0, 0),
        (cpu(claims=(ram(21, pending=True),)), Reason.RAM, 12 * GIB, 11 * GIB),
        (cpu(ram_free=11 * GIB, claims=(ram(21),)), Reason.RAM, 12 * GIB, 11 * GIB),
        (cpu(claims=(cores(4),)), None, 0, 0),
        (cpu(claims=(cores(5),)), Reason.CORES, 4, 3),
    ],
)
def test_ram_and_cores_are_the_resource(
    host: HostSnapshot, refusal: Reason | None, needed: int, available: int
) -> None:
    placement = on_hosts(wish(placement={"cores": 4}), host)
    (verdict,) = placement.verdicts
    assert verdict.refusal == refusal
    if refusal:
        assert (verdict.needed, verdict.available) == (needed, available)
        assert verdict.held_by == (("other.v1",) if host.claims else ())


def test_cores_are_claimed_where_they_are_asked_for_and_shared_else() -> None:
    (seat,) = on_hosts(wish(placement={"cores": 4}), cpu()).seats
    assert (seat.cores, seat.accelerator_type) == (4, CPU)
    assert {claim.resource for claim in seat.claims} == {
        Resource.RAM,
        Resource.CORES,
        Resource.PORT,
    }
    (seat,) = on_hosts(wish(), cpu()).seats
    assert seat.cores == 0
    assert "shares the cores" in seat.reason


def test_nothing_is_shared_where_every_core_is_claimed() -> None:
    assert not on_hosts(wish(), cpu(claims=(cores(8),))).fits


def test_two_replicas_share_a_host_as_long_as_ram_and_cores_last() -> None:
    request = wish(replicas=2, placement={"cores": 4})
    assert [seat.host for seat in on_hosts(request, cpu()).seats] == ["cpu-1", "cpu-1"]
    assert not on_hosts(request, cpu(ram_free=23 * GIB)).fits
    assert not on_hosts(request, cpu(cpus=7)).fits


def test_the_refusal_of_a_later_replica_tells_where_the_earlier_ones_are() -> None:
    placement = on_hosts(wish(replicas=3), cpu())
    assert not placement.fits
    assert placement.verdicts[0].detail == (
        "RAM: 12.0 GiB needed, 8.0 GiB available; 2 of the replicas placed here already"
    )


@pytest.mark.parametrize(
    ("name", "least"), [(EngineName.TRANSFORMERS, 9.6), (EngineName.VLLM, 12.6)]
)
def test_without_a_statement_the_engine_says_how_much_ram_it_takes(
    name: EngineName, least: float
) -> None:
    request = a_request(a_spec(placement={"accelerators": 0}), engine=ENGINES[name])
    assert least * GIB <= request.cpu_demand.least().bytes < 2 * least * GIB


def qwen(policy: str = "fitted") -> Request:
    """A model whose RAM is known for each context: 144 KiB for each token."""
    config, headers = known("qwen3-8b")
    spec = a_spec(placement={"accelerators": 0, "policy": policy})
    memory = MemoryModel(config, headers, memory_options(spec))
    model = Subject(spec, a_profile(context=40_960), memory)
    return request_for(model, ENGINES[EngineName.VLLM])


def test_on_processors_too_the_context_is_as_long_as_the_room_allows() -> None:
    whole, least = (ask.bytes for ask in (qwen().cpu_demand.full(), qwen().cpu_demand.least()))
    assert least < whole
    middle = (least + whole) // 2
    sizes = {"small": least, "middle": middle}
    poor = [a_host(name, 0, ram_free=size) for name, size in sizes.items()]
    (seat,) = on_hosts(qwen(), *poor).seats
    assert seat.host == "middle"
    assert 8192 < seat.tokens < 40_960
    assert seat.ram_bytes <= middle
    placement = on_hosts(qwen(), *poor, a_host("large", 0))
    (seat,) = placement.seats
    assert (seat.host, seat.tokens) == ("large", 40_960)
    assert [v.refusal for v in placement.verdicts] == [Reason.RAM, Reason.RAM, None]
    assert all(v.needed > v.available for v in placement.verdicts[:2])


def test_the_policy_baseline_caps_the_context_on_processors_too() -> None:
    (seat,) = on_hosts(qwen("baseline"), a_host("large", 0)).seats
    assert seat.tokens == 8192


def test_accelerators_are_preferred_and_left_alone_when_none_are_wished() -> None:
    fleet = (cpu(), a_host("gpu-1"))
    auto = on_hosts(a_request(), *fleet)
    assert auto.seats[0].host == "gpu-1"
    wish_for_none = a_request(a_spec(placement={"accelerators": 0}))
    (seat,) = on_hosts(wish_for_none, a_host("gpu-1")).seats
    assert seat.accelerators == ()


def test_a_host_without_accelerators_serves_where_those_of_others_are_too_small() -> None:
    small = cpu("gpu-1", accelerators=(an_accelerator(gib=4),))
    placement = on_hosts(
        a_request(a_spec(placement={"ram": "12GiB"}), engine=TRANSFORMERS), small, cpu()
    )
    assert placement.seats[0].host == "cpu-1"
    assert placement.verdicts[0].refusal == Reason.ACCELERATOR_MEMORY


def test_replicas_of_one_image_run_on_processors_where_accelerators_do_not_hold_all() -> None:
    profile = a_profile(weight_bytes=70 * GIB, context=2048)
    large = a_host("cpu-1", 0, ram_total=256 * GIB, ram_free=256 * GIB)
    placement = on_hosts(a_request(a_spec(replicas=2), profile), a_host("gpu-1"), large)
    assert {seat.accelerator_type for seat in placement.seats} == {CPU}


@pytest.mark.parametrize(("strategy", "host"), [("spread", "empty"), ("binpack", "busy")])
def test_the_strategy_looks_at_ram(strategy: str, host: str) -> None:
    claims = (a_claim(Resource.RAM, 10 * GIB, host="busy"),)
    fleet = (cpu("busy", ram_free=22 * GIB, claims=claims), cpu("empty"))
    (seat,) = on_hosts(wish(placement={"strategy": strategy}), *fleet).seats
    assert seat.host == host


def test_parallel_sizes_do_not_ask_for_accelerators_where_none_are_wished() -> None:
    request = a_request(a_spec(engine={"args": ["-tp 2"]}, placement={"accelerators": 0}))
    (seat,) = on_hosts(request, a_host(gpus=8)).seats
    assert seat.accelerator_type == CPU
