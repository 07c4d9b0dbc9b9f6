"""A second KV cache in RAM is claimed with the accelerators that it extends."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.placement.claims import Resource
from moorage.placement.verdict import Refusal
from moorage.units import GIB
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
    assert verdict.refusal == Refusal.RAM
    assert verdict.available == 112 * GIB < verdict.needed
    assert verdict.held_by == ("other.v1",)


def test_a_host_with_the_ram_is_preferred_to_none() -> None:
    poor, rich = a_host("poor", ram_free=8 * GIB), a_host("rich")
    placement = placed(extended(ram="32GiB"), poor, rich)
    assert [seat.host for seat in placement.seats] == ["rich"]
