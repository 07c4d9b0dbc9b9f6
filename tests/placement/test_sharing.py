"""Small models share an accelerator: real configurations, on an accelerator that NVML described."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moorage.common.units import GIB, MIB
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Claim
from moorage.inventory.snapshot import HostSnapshot
from moorage.memory.demand import memory_model
from moorage.models.profile import derive_profile
from moorage.placement.demand import Subject
from moorage.placement.placement import Placement
from moorage.placement.propose import NoFit, propose
from tests.adapters.hosts.test_local_host import L4, Recording, recorded
from tests.builders import a_fleet, a_host, a_model, a_spec
from tests.memory.models import known

L4_BYTES = 23034 * MIB


def host(*claims: Claim) -> HostSnapshot:
    used = sum(claim.amount for claim in claims if claim.resource == "accelerator")
    free = (L4_BYTES - used) // MIB
    (gpu,) = recorded(Recording({**L4, "memory": (L4_BYTES // MIB, free)})).accelerators
    return a_host(accelerators=(gpu,), claims=claims)


def proposed(name: str, *claims: Claim, **wish: Any) -> Placement:
    config, headers = known(name)
    spec = a_spec(name=name, engine={"name": "vllm"}, **wish)
    model = a_model(config=config, headers=headers)
    profile = derive_profile(spec, model)
    subject = Subject(spec, profile, memory_model(spec, model, profile))
    return propose(subject, a_fleet(host(*claims)), ENGINES)


def held(placement: Placement, release: str) -> tuple[Claim, ...]:
    return tuple(replace(claim, release=release) for claim in placement.claims)


def test_two_models_that_fit_together_are_placed_together() -> None:
    first = proposed("qwen3-0.6b", context=16384)
    second = proposed("bge-base-en", *held(first, "first.v1"))
    seats = (*first.seats, *second.seats)
    assert [seat.accelerators for seat in seats] == [(0,), (0,)]
    assert sum(seat.accelerator_bytes[0] for seat in seats) <= L4_BYTES
    assert all(0 < seat.utilization < 0.5 for seat in seats)
    assert len({seat.port for seat in seats}) == 2


def test_a_third_that_does_not_fit_any_more_is_told_who_holds_the_memory() -> None:
    first = held(proposed("qwen3-0.6b", context=16384), "first.v1")
    with pytest.raises(NoFit, match=r"held by first\.v1") as caught:
        proposed("qwen3-8b", *first, context=16384)
    assert "Retire first.v1: in its place the model fits." in caught.value.suggestion
    assert "weights 15.3 GiB" in caught.value.detail


def test_a_context_that_nobody_stated_shrinks_to_what_the_neighbour_leaves() -> None:
    alone = proposed("qwen3-0.6b")
    first = held(proposed("qwen3-0.6b", context=32768, concurrency=4), "first.v1")
    second = proposed("qwen3-0.6b", *first)
    assert second.seats[0].tokens < alone.seats[0].tokens == 40960
    assert "as many as fit" in second.seats[0].reason


def test_a_whole_accelerator_is_taken_where_the_policy_says_so() -> None:
    (seat,) = proposed("qwen3-0.6b", placement={"policy": "whole"}).seats
    assert seat.utilization > 0.95
    assert L4_BYTES - seat.accelerator_bytes[0] < GIB // 10
