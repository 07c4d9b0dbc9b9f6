"""vLLM's own sleep: what is planned for it, what it keeps, and where it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.sleep import EngineSleep, SleepStep, claims_asleep
from moorage.engines.vllm.sleep import bytes_asleep, engine_sleep
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.memory.need import Batch, Need, Term
from tests.builders import ON_CPU, a_host, a_placement, a_profile, a_spec, an_image
from tests.engines.planning import planned

ACCELERATOR = Resource.ACCELERATOR
GIB = 2**30


def a_need(stated: int | None = None) -> Need:
    sizes = {"weights": 10, "kv_cache": 20, "activation": 2, "cuda_graphs": 1}
    return Need(
        tokens=1,
        concurrency=1,
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        batch=Batch(tokens=1, seqs=1),
        terms=tuple(
            Term(name=name, bytes=size * GIB, exact=True, reason="") for name, size in sizes.items()
        ),
        stated=stated,
    )


def requests_at(level: int) -> EngineSleep:
    found = engine_sleep(a_spec(sleep_level=level))
    assert found is not None
    return found


def test_at_level_one_it_sleeps_and_wakes_with_a_request_each() -> None:
    how = requests_at(1)
    assert how.sleep == (SleepStep(path="/sleep", parameters={"level": "1", "mode": "wait"}),)
    assert how.wake == (SleepStep(path="/wake_up"),)


def test_at_level_two_the_weights_are_read_before_the_cache_is_made() -> None:
    assert [step.path for step in requests_at(2).wake] == [
        "/wake_up",
        "/collective_rpc",
        "/wake_up",
    ]
    assert requests_at(2).wake[1].body == {"method": "reload_weights"}
    assert [step.parameters.get("tags") for step in requests_at(2).wake] == [
        "weights",
        None,
        "kv_cache",
    ]


@pytest.mark.parametrize(
    ("need", "kept"), [(a_need(), 5), (None, 35), (a_need(stated=35 * GIB), 35)]
)
def test_asleep_it_keeps_all_but_weights_and_cache_where_they_are_known(
    need: Need | None, kept: int
) -> None:
    assert bytes_asleep(need, 35 * GIB) == kept * GIB


@pytest.mark.parametrize("level", [1, 2])
def test_a_level_switches_sleep_on_and_opens_its_endpoints(level: int) -> None:
    plan = planned({"sleep_level": level}, a_host(bind="127.0.0.1"), an_image())
    (container,) = plan.containers
    (flag,) = (one for one in container.command if "--enable-sleep-mode" in one.tokens)
    assert flag.reason == "sleep_level"
    variables = {one.name: one.value for one in container.environment}
    assert variables["VLLM_SERVER_DEV_MODE"] == "1"
    assert any("put the engine to sleep" in warning for warning in plan.warnings)


def test_without_a_level_nothing_changes() -> None:
    (container,) = planned({}, a_host(), an_image()).containers
    assert "--enable-sleep-mode" not in container.argv
    assert "VLLM_SERVER_DEV_MODE" not in {one.name for one in container.environment}


@pytest.mark.parametrize(
    ("wish", "host", "why"),
    [
        ({"placement": ON_CPU}, a_host(bind="127.0.0.1"), "vLLM does not sleep on cpu"),
        ({}, a_host(bind="10.0.0.7"), "everybody who reaches 10.0.0.7"),
        ({"engine": {"name": "custom", "image": "x", "command": ["y"]}}, a_host(), "custom cannot"),
    ],
)
def test_it_is_refused_where_vllm_cannot_or_others_could_put_it_to_sleep(
    wish: dict[str, Any], host: HostSnapshot, why: str
) -> None:
    with pytest.raises(Failure, match=f"sleep_level: {why}") as refused:
        planned({"sleep_level": 1, **wish}, host, an_image())
    assert refused.value.cause is Cause.BAD_SPEC


@pytest.mark.parametrize(("level", "method"), [(1, "eagle3"), (2, "ngram")])
def test_a_draft_without_weights_or_in_ram_may_sleep(level: int, method: str) -> None:
    drafts = {"method": method, "tokens": 2, **({"model": "hf://a/b"} if level == 1 else {})}
    spec = {"sleep_level": level, "speculative": drafts}
    assert planned(spec, a_host(bind="127.0.0.1"), an_image()).containers


def test_a_draft_that_would_lose_its_weights_is_refused() -> None:
    drafts = {"method": "eagle3", "tokens": 2, "model": "hf://a/b"}
    with pytest.raises(Failure, match="at level 2 vLLM loses the weights of the draft"):
        planned({"sleep_level": 2, "speculative": drafts}, a_host(bind="127.0.0.1"), an_image())


def test_the_weights_of_level_one_have_a_place_in_ram_all_along() -> None:
    profile, host = a_profile(), a_host()
    ram = {
        level: sum(
            claim.amount
            for claim in a_placement(a_spec(sleep_level=level), host).claims
            if claim.resource is Resource.RAM
        )
        for level in (0, 1, 2)
    }
    assert ram == {0: 0, 1: profile.weight_bytes, 2: 0}


def test_a_release_whose_engine_sleeps_claims_less_and_no_port() -> None:
    placement = a_placement(a_spec(sleep_level=1), a_host())
    asleep = claims_asleep(placement, lambda _need, claimed: claimed // 10)
    assert {claim.resource for claim in asleep} == {Resource.ACCELERATOR, Resource.RAM}
    before = {claim.index: claim for claim in placement.claims if claim.resource is ACCELERATOR}
    assert before
    for claim in asleep:
        if claim.resource is ACCELERATOR:
            assert claim.amount == before[claim.index].amount // 10
