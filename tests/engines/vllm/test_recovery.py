from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.engines.vllm.recovery import LEAST_TOKENS
from moorage.memory.need import Batch, Need, Term
from moorage.spec import EngineName

SIZES = {"weights": 20, "kv_cache": 40, "activation": 4}


def a_need(concurrency: int = 4) -> Need:
    """64 GiB within the share: 20 of weights, 40 of cache, 4 to work with."""
    terms = tuple(
        Term(name=name, bytes=gib * GIB, exact=True, inside=True, reason="")
        for name, gib in SIZES.items()
    )
    return Need(
        tokens=8192,
        concurrency=concurrency,
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        batch=Batch(tokens=8192, seqs=256),
        terms=terms,
    )


def remedy(cause: Cause, need: Need | None = None, **named: str) -> tuple[str, str, str] | None:
    found = ENGINES[EngineName.VLLM].remedy(Failure(cause, "", named=named), need)
    return (found.option, found.before, found.value) if found else None


@pytest.mark.parametrize("cause", [Cause.ENGINE_KV_CACHE_TOO_SMALL, Cause.ENGINE_CONTEXT_TOO_LONG])
def test_the_length_that_vllm_named_is_taken(cause: Cause) -> None:
    expected = ("--max-model-len", "131072", "74544")
    assert remedy(cause, asked="131072", length="74544") == expected


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"length": "74544"},
        {"asked": "8192", "length": "8192"},
        {"asked": "8192", "length": str(LEAST_TOKENS - 1)},
        {"asked": "8192", "length": "0"},
    ],
)
def test_a_length_that_is_unknown_or_serves_nobody_is_not_taken(named: dict[str, str]) -> None:
    assert remedy(Cause.ENGINE_KV_CACHE_TOO_SMALL, None, **named) is None


def test_as_many_requests_a_step_are_taken_as_vllm_named_recurrent_states() -> None:
    cause = Cause.ENGINE_KV_CACHE_TOO_SMALL
    assert remedy(cause, seqs="1024", blocks="200") == ("--max-num-seqs", "1024", "200")
    assert remedy(cause, seqs="200", blocks="0") is None


def test_the_share_becomes_what_is_free_less_a_margin() -> None:
    expected = ("--gpu-memory-utilization", "0.9", "0.746")
    found = remedy(Cause.ENGINE_ACCELERATOR_BUSY, a_need(), free="60.0", total="80.0", share="0.9")
    assert found == expected


@pytest.mark.parametrize(
    ("free", "concurrency", "is_enough"),
    [
        ("34.5", 4, True),  # 24 GiB and a quarter of the cache are 34
        ("33.5", 4, False),
        ("64.5", 1, True),
        ("60.0", 1, False),
    ],
)
def test_a_share_must_hold_the_weights_and_one_request(
    free: str, concurrency: int, is_enough: bool
) -> None:
    named = {"free": free, "total": "80.0", "share": "0.9"}
    found = remedy(Cause.ENGINE_ACCELERATOR_BUSY, a_need(concurrency), **named)
    assert (found is not None) == is_enough


@pytest.mark.parametrize(
    ("need", "named"),
    [
        (None, {"free": "60.0", "total": "80.0", "share": "0.9"}),
        (a_need(), {}),
        (a_need(), {"free": "79.0", "total": "80.0", "share": "0.9"}),
    ],
)
def test_a_share_that_nobody_can_judge_or_that_is_no_smaller_is_not_taken(
    need: Need | None, named: dict[str, str]
) -> None:
    assert remedy(Cause.ENGINE_ACCELERATOR_BUSY, need, **named) is None


@pytest.mark.parametrize("cause", sorted(set(Cause)))
def test_other_causes_have_no_number(cause: Cause) -> None:
    assert remedy(cause) is None


def test_an_engine_that_names_nothing_has_no_remedy() -> None:
    failure = Failure(Cause.ENGINE_CONTEXT_TOO_LONG, "", named={"asked": "2", "length": "1"})
    assert ENGINES[EngineName.TRANSFORMERS].remedy(failure, None) is None
