from __future__ import annotations

from functools import partial
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Refusal
from moorage.common.units import GIB, KIB
from moorage.common.values import Origin
from moorage.models.profile import derive_profile
from moorage.placement.demand import Allocation, Demand, Split
from moorage.placement.memory import LEAST_CONTEXT, MemoryRequest, estimated_memory, memory_request
from moorage.placement.view import AcceleratorKind
from moorage.spec import Policy
from tests.builders import a_model, a_profile, a_spec
from tests.memory.models import plain
from tests.placement.requests import StatedSizes

H100 = AcceleratorKind("cuda", "NVIDIA H100", 80 * GIB)
H200 = AcceleratorKind("cuda", "NVIDIA H200", 141 * GIB)
L4 = AcceleratorKind("cuda", "NVIDIA L4", 24 * GIB)
ONE, TWO = Split(), Split(tensor=2)
LONG = 131_072
KNOWN = "qwen3-8b"


def stated_memory(weights: int = 10, each: int = 128 * KIB, **changes: Any) -> StatedSizes:
    """Memory of so many GiB, and so many bytes for each token."""
    return StatedSizes(lambda tokens, t, p: (weights * GIB + tokens * each) // (t * p), **changes)


def requested(*args: str, **changes: Any) -> MemoryRequest:
    context = changes.pop("profile", {})
    return memory_request(a_spec(engine={"args": list(args)}, **changes), a_profile(**context))


def allocated(answer: Allocation | Refusal) -> Allocation:
    assert isinstance(answer, Allocation)
    return answer


def refused(demand: Demand, *, full: bool = False) -> str:
    answer = demand.full(H100, ONE) if full else demand.least(H100, ONE)
    assert isinstance(answer, Refusal)
    return str(answer)


@pytest.mark.parametrize(
    ("args", "profile", "context", "stated", "least"),
    [
        ((), {"context": LONG}, LONG, False, LEAST_CONTEXT),
        ((), {"context": 4096}, 4096, False, 4096),
        ((), {"context": LONG, "context_origin": Origin.USER}, LONG, True, LONG),
        (("--max-model-len 32K",), {"context": LONG}, 32_768, True, 32_768),
        (("--max_model_len=32k",), {"context": LONG}, 32_000, True, 32_000),
        (("--max-model-len auto",), {"context": LONG}, LONG, False, LEAST_CONTEXT),
        (("--max-model-len -1",), {"context": LONG}, LONG, False, LEAST_CONTEXT),
        ((), {"context": 10**12}, 10**12, False, LEAST_CONTEXT),
        ((), {"context": 1}, 1, False, 1),
    ],
)
def test_a_context_that_nobody_states_may_be_shortened_but_not_below_the_least(
    args: tuple[str, ...], profile: dict[str, Any], context: int, stated: bool, least: int
) -> None:
    wanted = requested(*args, profile=profile)
    assert (wanted.context, wanted.stated, wanted.least_context) == (context, stated, least)


@pytest.mark.parametrize(
    ("context", "concurrency", "at_once"),
    [(LONG, "auto", 1), (8192, "auto", 4), (5000, "auto", 7), (LONG, 3, 3), (1, "auto", 32_768)],
)
def test_the_cache_holds_a_full_context_or_as_many_as_make_enough_tokens(
    context: int, concurrency: Any, at_once: int
) -> None:
    assert requested(profile={"context": context}, concurrency=concurrency).concurrency == at_once


@pytest.mark.parametrize(
    ("args", "share"),
    [
        ((), 0.0),
        (("--gpu-memory-utilization 0.5",), 0.5),
        (("--gpu_memory_utilization=0.85",), 0.85),
        (("--gpu-memory-utilization", "1"), 1.0),
    ],
)
def test_a_share_that_the_user_states_is_read(args: tuple[str, ...], share: float) -> None:
    assert requested(*args).utilization == share


@pytest.mark.parametrize("share", ["0", "1.1", "-0.5", "much", "nan", "inf"])
def test_a_share_that_is_none_is_refused(share: str) -> None:
    with pytest.raises(Failure) as caught:
        requested(f"--gpu-memory-utilization={share}")
    assert caught.value.cause is Cause.BAD_SPEC


VISION = {"num_attention_heads": 16}


@pytest.mark.parametrize(
    ("args", "config", "heads"),
    [
        ([], {"num_attention_heads": 32}, (32, 0)),
        ([], {"num_attention_heads": 32, "vision_config": VISION}, (32, 16)),
        (
            ["--mm-encoder-tp-mode=data"],
            {"num_attention_heads": 32, "vision_config": VISION},
            (32, 0),
        ),
        (["--language-model-only"], {"num_attention_heads": 32, "vision_config": VISION}, (32, 0)),
        (['--hf-overrides={"num_attention_heads": 24}'], {"num_attention_heads": 32}, (24, 0)),
        ([], {}, (0, 0)),
    ],
)
def test_the_heads_that_ranks_share_are_those_that_the_engine_will_see(
    args: list[str], config: dict[str, Any], heads: tuple[int, int]
) -> None:
    spec = a_spec(engine={"args": args}, context=8192)
    config = {"architectures": ["LlamaForCausalLM"], **config}
    wanted = memory_request(spec, derive_profile(spec, a_model(config)))
    assert (wanted.attention_heads, wanted.vision_heads) == heads


@pytest.mark.parametrize(
    ("ranks", "reason"),
    [(1, ""), (2, ""), (3, "3 do not divide 32 attention heads"), (32, "32 do not divide 16")],
)
def test_ranks_share_all_heads_evenly(ranks: int, reason: str) -> None:
    demand = Demand(
        stated_memory(), MemoryRequest(context=8192, attention_heads=32, vision_heads=16)
    )
    assert demand.uneven(ranks).startswith(reason)
    assert bool(demand.uneven(ranks)) is bool(reason)
    assert isinstance(demand.least(H100, Split(tensor=ranks)), Refusal) is bool(reason)
    assert allocated(demand.least(H100, Split(pipeline=3)))


def test_least_and_full_are_the_claims_of_the_shortest_and_the_whole_context() -> None:
    demand = Demand(stated_memory(outside=GIB // 2), MemoryRequest(context=LONG))
    least, full = allocated(demand.least(H100, ONE)), allocated(demand.full(H100, ONE))
    assert (least.tokens, full.tokens) == (LEAST_CONTEXT, LONG)
    assert 11.5 * GIB <= least.bytes < 11.6 * GIB + 80 * GIB // 1000
    assert 26.5 * GIB <= full.bytes < 26.6 * GIB + 80 * GIB // 1000


def test_a_share_is_the_smallest_in_thousandths_that_serves() -> None:
    allocation = allocated(
        Demand(stated_memory(outside=GIB // 2), MemoryRequest(context=8192)).full(H100, ONE)
    )
    assert allocation.utilization == 0.138
    assert allocation.bytes == ceil(80 * GIB * 0.138) + GIB // 2


@pytest.mark.parametrize(("budget", "tokens"), [(80, LONG), (27, LONG), (12, 8192), (5, 8192)])
def test_what_is_fitted_never_serves_less_than_the_least(budget: int, tokens: int) -> None:
    demand = Demand(stated_memory(outside=GIB // 2), MemoryRequest(context=LONG))
    allocation = demand.fitted(H100, ONE, budget * GIB)
    assert allocation.tokens == tokens or 8192 <= allocation.tokens < 16_384


def test_a_context_that_the_user_states_is_never_shortened() -> None:
    demand = Demand(stated_memory(), MemoryRequest(context=LONG, stated=True))
    assert demand.fitted(H100, ONE, 20 * GIB).tokens == LONG
    assert demand.least(H100, ONE) == demand.full(H100, ONE)


def test_where_the_whole_context_is_refused_but_a_shorter_is_not_the_longest_is_taken() -> None:
    limited = StatedSizes(lambda tokens, *_: GIB if tokens <= 50_000 else 0)
    demand = Demand(limited, MemoryRequest(context=LONG))
    assert refused(demand, full=True) == "the engine would not start"
    assert demand.fitted(H100, ONE, 80 * GIB).tokens == 50_000


def test_the_batch_doubles_on_a_large_accelerator_and_is_paid_for() -> None:
    """vLLM schedules 8192 tokens at once from 70 GiB on, 2048 below."""
    wanted = MemoryRequest(context=40_960, concurrency=1)
    demand = Demand(plain(KNOWN).need, wanted)
    small = AcceleratorKind("cuda", "x", 69 * GIB)
    large = AcceleratorKind("cuda", "x", 71 * GIB)
    needs = [allocated(demand.full(kind, ONE)).need for kind in (small, large)]
    assert [need.batch.tokens for need in needs] == [2048, 8192]
    assert needs[0].inside < needs[1].inside


@given(st.integers(10, 80), st.integers(10, 80), st.sampled_from([L4, H100, H200]))
def test_a_larger_budget_never_shortens_what_an_exact_model_serves(
    one: int, other: int, kind: AcceleratorKind
) -> None:
    demand = Demand(plain(KNOWN).need, MemoryRequest(context=40_960))
    least = allocated(demand.least(kind, ONE)).bytes
    budgets = sorted(max(least, gib * GIB) for gib in (one, other))
    less, more = (demand.fitted(kind, ONE, budget) for budget in budgets)
    assert less.tokens <= more.tokens
    assert less.bytes <= budgets[0]
    assert more.bytes <= budgets[1]


class TestStatedShare:
    """`--gpu-memory-utilization` in the user's arguments."""

    def test_exactly_that_share_is_claimed_and_the_driver_on_top(self) -> None:
        demand = Demand(stated_memory(outside=GIB), MemoryRequest(context=8192, utilization=0.5))
        allocation = allocated(demand.full(H100, ONE))
        assert (allocation.utilization, allocation.bytes) == (0.5, 41 * GIB)

    def test_the_context_is_what_the_share_holds(self) -> None:
        demand = Demand(stated_memory(), MemoryRequest(context=LONG, utilization=0.25))
        assert isinstance(demand.full(H100, ONE), Refusal)
        allocation = demand.fitted(H100, ONE, 80 * GIB)
        assert allocation.bytes == 20 * GIB
        assert 80_000 < allocation.tokens <= 81_920

    def test_a_share_that_is_too_small_is_refused_with_the_one_that_would_do(self) -> None:
        demand = Demand(stated_memory(), MemoryRequest(context=8192, utilization=0.1))
        assert refused(demand, full=True) == (
            "--gpu-memory-utilization 0.1 is too small: 8192 tokens take 0.138"
        )

    def test_it_wins_over_taking_all(self) -> None:
        wanted = MemoryRequest(context=8192, utilization=0.5, policy=Policy.WHOLE)
        allocation = Demand(stated_memory(), wanted).fitted(H100, ONE, 80 * GIB)
        assert (allocation.utilization, allocation.bytes) == (0.5, 40 * GIB)


class TestStatedClaim:
    """`memory.claim` in the spec."""

    def test_it_is_the_claim_whatever_is_worked_out(self) -> None:
        demand = Demand(stated_memory(outside=GIB, stated=20 * GIB), MemoryRequest(context=8192))
        allocation = demand.fitted(H100, ONE, 80 * GIB)
        assert allocation.bytes == 20 * GIB
        assert ceil(80 * GIB * allocation.utilization) + GIB <= 20 * GIB

    def test_the_context_is_what_it_holds(self) -> None:
        demand = Demand(stated_memory(stated=12 * GIB), MemoryRequest(context=LONG))
        allocation = demand.fitted(H100, ONE, 80 * GIB)
        assert (allocation.bytes, allocation.tokens) == (12 * GIB, 16_384)

    def test_the_user_is_believed_where_not_even_the_least_would_fit(self) -> None:
        demand = Demand(stated_memory(stated=8 * GIB), MemoryRequest(context=LONG))
        allocation = demand.fitted(H100, ONE, 80 * GIB)
        assert (allocation.bytes, allocation.tokens) == (8 * GIB, LEAST_CONTEXT)

    def test_a_context_that_is_stated_too_is_kept(self) -> None:
        demand = Demand(stated_memory(stated=12 * GIB), MemoryRequest(context=LONG, stated=True))
        assert demand.fitted(H100, ONE, 80 * GIB).tokens == LONG

    def test_it_wins_over_taking_all(self) -> None:
        wanted = MemoryRequest(context=8192, policy=Policy.WHOLE)
        demand = Demand(stated_memory(stated=20 * GIB), wanted)
        assert demand.fitted(H100, ONE, 80 * GIB).bytes == 20 * GIB

    @pytest.mark.parametrize("claim", [GIB // 2, GIB, GIB + 1])
    def test_a_claim_that_the_driver_alone_fills_is_refused(self, claim: int) -> None:
        demand = Demand(stated_memory(outside=GIB, stated=claim), MemoryRequest(context=8192))
        assert "leaves the engine nothing: 1.0 GiB are outside of it" in refused(demand)


@given(
    st.integers(8 * GIB, 200 * GIB),
    st.floats(0.2, 1),
    st.integers(0, 2 * GIB),
    st.sampled_from([0, 1, 4096, 100 * KIB]),
)
def test_taking_all_stays_within_the_budget_to_the_byte(
    total: int, share: float, outside: int, off: int
) -> None:
    kind, budget = AcceleratorKind("cuda", "x", total), int(total * share) - off
    demand = Demand(
        stated_memory(weights=0, each=KIB, outside=outside),
        MemoryRequest(context=8192, policy=Policy.WHOLE),
    )
    if allocated(demand.least(kind, ONE)).bytes > budget:
        return
    allocation = demand.fitted(kind, ONE, budget)
    assert ceil(total * allocation.utilization) + outside == allocation.bytes <= budget
    assert budget - allocation.bytes <= total // 1000 + 2
    assert allocation.utilization <= 1


@pytest.mark.parametrize("steps", range(100, 1000, 7))
def test_taking_all_of_a_budget_of_whole_thousandths_is_not_a_byte_too_much(steps: int) -> None:
    total = 1000 * 2**20
    demand = Demand(
        stated_memory(weights=0, each=1), MemoryRequest(context=8192, policy=Policy.WHOLE)
    )
    kind, budget = AcceleratorKind("cuda", "x", total), steps * 2**20
    allocation = demand.fitted(kind, ONE, budget)
    assert allocation.bytes == ceil(total * allocation.utilization) <= budget


def test_weights_of_unknown_size_are_never_taken_for_nothing() -> None:
    memory = partial(estimated_memory, a_profile(weight_bytes=0), "no tensor headers", 0)
    demand = Demand(memory, MemoryRequest(context=8192))
    assert "size of the weights is unknown: state `memory.claim`" in refused(demand)
    with pytest.raises(Refusal, match="unknown"):
        demand.fitted(H100, ONE, 80 * GIB)
