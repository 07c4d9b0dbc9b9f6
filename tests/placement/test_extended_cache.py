"""A second KV cache in RAM is claimed with the accelerators that it extends."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.refusal import Reason
from moorage.common.units import GIB
from moorage.inventory.claims import Resource
from tests.builders import a_claim, a_host, a_spec, placed


def extended(**cache: Any) -> Any:
    return a_spec(extended_kv_cache=cache)


def test_its_size_is_claimed_where_it_is_stated() -> None:
    (seat,) = placed(extended(ram="32GiB"), a_host()).seats
    assert seat.ram_bytes == 32 * GIB


def test_it_goes_with_the_memory_that_is_claimed_where_it_is_a_ratio() -> None:
    (seat,) = placed(extended(ratio=2.0), a_host()).seats
    assert seat.ram_bytes == 2 * sum(seat.accelerator_bytes)


def test_it_is_claimed_beside_the_ram_that_the_spec_reserves() -> None:
    spec = a_spec(extended_kv_cache={"ram": "32GiB"}, placement={"ram": "16GiB"})
    (seat,) = placed(spec, a_host()).seats
    assert seat.ram_bytes == 48 * GIB


@pytest.mark.parametrize("cache", [{"ram": "128GiB"}, {"ratio": 10.0}], ids=str)
def test_a_host_without_the_ram_is_refused_for_it(cache: dict[str, Any]) -> None:
    host = a_host(claims=(a_claim(Resource.RAM, 16 * GIB, release="other.v1"),))
    (verdict,) = placed(extended(**cache), host).verdicts
    assert verdict.refusal == Reason.RAM
    assert verdict.available == 112 * GIB < verdict.needed
    assert verdict.held_by == ("other.v1",)


def test_a_host_with_the_ram_is_preferred_to_none() -> None:
    poor, rich = a_host("poor", ram_free=8 * GIB), a_host("rich")
    placement = placed(extended(ram="32GiB"), poor, rich)
    assert [seat.host for seat in placement.seats] == ["rich"]


def hosts(*ram: int) -> list[Any]:
    return [
        a_host(f"h{at}", 1, bind=f"10.0.0.{at + 1}", ram_total=gib * GIB, ram_free=gib * GIB)
        for at, gib in enumerate(ram)
    ]


@pytest.mark.parametrize("distributed", ["native", "ray"])
@pytest.mark.parametrize("cache", [{"ram": "100GiB"}, {"ratio": 100.0}], ids=str)
def test_each_host_of_a_replica_has_to_have_the_ram(
    cache: dict[str, Any], distributed: str
) -> None:
    spec = a_spec(
        extended_kv_cache=cache,
        engine={"name": "vllm", "distributed": distributed},
        placement={"hosts": 2},
    )
    short = placed(spec, *hosts(64, 64))
    assert not short.fits
    assert {verdict.refusal for verdict in short.verdicts} == {Reason.RAM}
    rich = placed(spec, *hosts(64, 1000, 64, 1000))
    assert {seat.host for seat in rich.seats} == {"h1", "h3"}


@pytest.mark.parametrize("policy", ["fitted", "whole"])
def test_a_cache_by_ratio_limits_the_memory_that_is_claimed(policy: str) -> None:
    host = a_host(gpus=1, ram_total=40 * GIB, ram_free=40 * GIB)
    spec = a_spec(extended_kv_cache={"ratio": 2.0}, placement={"policy": policy})
    (seat,) = placed(spec, host).seats
    assert seat.ram_bytes == 2 * seat.accelerator_bytes[0] <= 40 * GIB


def test_with_unified_memory_cache_and_model_share_the_bytes() -> None:
    host = a_host(gpus=1, ram_total=24 * GIB, ram_free=24 * GIB, unified_memory=True)
    assert placed(a_spec(), host).seats
    short = placed(extended(ram="23GiB"), host)
    assert not any(seat.accelerators for seat in short.seats)
