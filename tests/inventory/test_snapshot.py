from __future__ import annotations

from dataclasses import replace

import pytest

from moorage.common.units import GIB
from moorage.inventory.claims import Resource
from moorage.placement.fit import allocatable_memory, free_ports, room_of
from moorage.spec import EngineName
from tests.builders import a_claim, a_cpu_host, a_fleet, a_host, an_accelerator

HELD = (
    a_claim(Resource.ACCELERATOR, 72 * GIB, release="tiny.v1"),
    a_claim(Resource.RAM, 28 * GIB, release="tiny.v1"),
    a_claim(Resource.PORT, 1, 40000, release="tiny.v1"),
    a_claim(Resource.RAM, 10 * GIB, release="other.v1"),
)


def test_a_host_keeps_only_the_claims_that_are_its_own() -> None:
    elsewhere = a_claim(Resource.RAM, GIB, host="gpu-2")
    assert a_host().with_claims((*HELD, elsewhere)).claims == HELD


@pytest.mark.parametrize(
    ("uuids", "indexes"),
    [
        (("A", "B", "C"), [0, 2]),
        (("B", "C"), [1]),
        (("C", "B", "A"), [2, 0]),
        (("", "", ""), [0, 2]),
        ((), [0, 2]),
        (("A",), [0, 2]),
    ],
    ids=["as it was", "A is lost", "renumbered", "not known", "none", "C is unseen"],
)
def test_a_claim_follows_its_device(uuids: tuple[str, ...], indexes: list[int]) -> None:
    host = a_host(accelerators=[an_accelerator(at, uuid=one) for at, one in enumerate(uuids)])
    claims = [
        a_claim(Resource.ACCELERATOR, GIB, index, device=device)
        for index, device in ((0, "A"), (2, "C"))
    ]
    old = a_claim(Resource.ACCELERATOR, GIB, 1)
    found = host.with_claims((*claims, old, HELD[1])).claims
    assert [one.index for one in found if one.device] == indexes
    assert found[-2:] == (old, HELD[1])


def test_claims_add_up_by_resource_and_index() -> None:
    host = a_host(claims=HELD)
    assert host.claimed(Resource.RAM) == 38 * GIB
    assert host.claimed(Resource.ACCELERATOR, 0) == 72 * GIB
    assert host.claimed(Resource.ACCELERATOR, 1) == 0


@pytest.mark.parametrize(
    ("identifiers", "name"), [(("GPU-1",), "B"), (("GPU-0",), "A"), ((), ""), (("7",), "")]
)
def test_accelerators_are_found_by_identifier(identifiers: tuple[str, ...], name: str) -> None:
    host = a_host(accelerators=(an_accelerator(name="A"), an_accelerator(1, name="B")))
    assert host.accelerator_name(identifiers) == name


def test_ports_that_were_refused_are_not_proposed_again() -> None:
    refused = [a_claim(Resource.PORT, 1, 40000), a_claim(Resource.RAM, GIB, 40001)]
    seen = a_fleet(a_host(ports_in_use=(40002,)), a_host("gpu-2")).with_ports_in_use(refused)
    assert free_ports(seen.hosts[0], 2) == [40001, 40003]
    assert free_ports(seen.hosts[1], 1) == [40000]


def test_a_fleet_finds_its_hosts_by_name() -> None:
    fleet = a_fleet(a_host("gpu-1"), a_host("gpu-2"))
    assert fleet.host("gpu-2").name == "gpu-2"


def test_installed_programs_are_found_by_engine() -> None:
    program = a_cpu_host().program(EngineName.TRANSFORMERS)
    assert program
    assert program.version == "5.23.0"
    assert a_cpu_host().program(EngineName.VLLM) is None


def test_without_a_release_everything_that_it_holds_and_uses_is_free() -> None:
    host = a_host(
        claims=HELD,
        ram_free=90 * GIB,
        ports_in_use=(22, 40000),
        accelerators=(an_accelerator(memory_free=8 * GIB), an_accelerator(1)),
    )
    without = a_fleet(host).without("tiny.v1").host("gpu-1")
    assert {claim.release for claim in without.claims} == {"other.v1"}
    assert allocatable_memory(without, 0) == 80 * GIB
    assert room_of(without).ram == 118 * GIB
    assert free_ports(without, 1) == [40000]
    assert without.ports_in_use == (22,)


def test_without_the_claims_of_a_release_that_does_not_run_what_is_in_use_belongs_to_others() -> (
    None
):
    host = a_host(claims=HELD, ram_free=90 * GIB, ports_in_use=(40000,))
    without = a_fleet(host).without_claims("tiny.v1").host("gpu-1")
    assert {claim.release for claim in without.claims} == {"other.v1"}
    assert (without.ram_free, without.ports_in_use) == (90 * GIB, (40000,))


def test_replicas_on_one_accelerator_are_all_freed() -> None:
    held = tuple(
        a_claim(Resource.ACCELERATOR, 20 * GIB, 0, release=name)
        for name in ("tiny.v1", "tiny.v1", "other.v1")
    )
    host = a_host(claims=held, accelerators=(an_accelerator(memory_free=20 * GIB),))
    without = a_fleet(host).without("tiny.v1").host("gpu-1")
    assert without.accelerators[0].memory_free == 60 * GIB
    assert allocatable_memory(without, 0) == 60 * GIB


def test_what_a_release_has_not_taken_yet_was_never_in_use() -> None:
    """Half of the accelerator is a stranger's; retiring a pending release does not free it."""
    pending = tuple(replace(claim, pending=True) for claim in HELD)
    host = a_host(
        claims=pending, ram_free=64 * GIB, accelerators=(an_accelerator(memory_free=40 * GIB),)
    )
    without = a_fleet(host).without("tiny.v1").host("gpu-1")
    assert allocatable_memory(without, 0) == 40 * GIB
    assert room_of(without).ram == 54 * GIB


def test_what_is_freed_of_unified_memory_is_free_on_both_sides() -> None:
    held = (
        a_claim(Resource.ACCELERATOR, 40 * GIB, release="tiny.v1"),
        a_claim(Resource.RAM, 8 * GIB, release="tiny.v1"),
    )
    item = an_accelerator(gib=128, memory_free=70 * GIB)
    host = a_host(claims=held, unified_memory=True, ram_free=70 * GIB, accelerators=(item,))
    without = a_fleet(host).without("tiny.v1").host("gpu-1")
    assert (without.ram_free, without.accelerators[0].memory_free) == (118 * GIB, 118 * GIB)
    assert room_of(without).ram == allocatable_memory(without, 0) == 118 * GIB


@pytest.mark.parametrize("free", [0, 8, 80])
def test_what_is_freed_is_never_more_than_there_is(free: int) -> None:
    host = a_host(claims=HELD, accelerators=(an_accelerator(memory_free=free * GIB),))
    (item,) = a_fleet(host).without("tiny.v1").host("gpu-1").accelerators
    assert item.memory_free == min(80, free + 72) * GIB


def test_a_release_that_holds_nothing_changes_nothing() -> None:
    fleet = a_fleet(a_host(claims=HELD))
    assert fleet.without("nobody.v1") == fleet
