"""What a load measures, which limits it misses, and how much noise it bears."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pydantic import ValidationError

from moorage.readiness.acceptance import (
    ROUNDS,
    Acceptance,
    LoadFigures,
    Sample,
    Turn,
    judge_load,
    load_figures,
    load_request,
    percentile,
)
from moorage.spec.acceptance import AcceptanceSpec
from tests.builders import a_spec

FIGURES = LoadFigures(
    requests=32,
    ttft_p50=0.1,
    ttft_p95=0.2,
    tpot_p50=0.02,
    tpot_p95=0.03,
    tokens_per_second=100.0,
    goodput=2.0,
)


def a_load(**fields: Any) -> AcceptanceSpec:
    return AcceptanceSpec.model_validate(fields)


def figures(**changes: Any) -> LoadFigures:
    return FIGURES.model_copy(update=changes)


def test_each_prompt_begins_with_a_word_of_its_own_and_its_answer_is_streamed() -> None:
    load = a_load(prompt_words=3, max_tokens=8)
    path, body = load_request(a_spec(), load, 7, chat=True)
    assert path == "/v1/chat/completions"
    assert body == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "7: quiet lantern"}],
        "max_tokens": 8,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    path, body = load_request(a_spec(), load, 8, chat=False)
    assert (path, body["prompt"]) == ("/v1/completions", "8: river quiet")


def test_figures_are_of_what_was_answered_and_goodput_of_what_met_the_limits() -> None:
    answered = [Sample(ttft=0.01 * n, tpot=0.001 * n, tokens=10) for n in range(1, 21)]
    samples = [*answered, Sample(ttft=0.3, tokens=1), Sample(wrong="HTTP 500: broken")]
    found = load_figures(samples, 2.0, a_load(ttft_p95="100ms", tpot_p95="0.5s"))
    assert found == LoadFigures(
        requests=22,
        failed=1,
        problem="HTTP 500: broken",
        ttft_p50=0.11,
        ttft_p95=0.2,
        tpot_p50=0.01,
        tpot_p95=0.019,
        tokens_per_second=100.5,
        goodput=5.0,
    )


def test_a_load_without_an_answer_has_no_times() -> None:
    found = load_figures([Sample(wrong="late")], 0.0, a_load())
    assert (found.ttft_p95, found.tpot_p95, found.tokens_per_second) == (None, None, 0.0)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, None), ([3.0], 0.95, 3.0), ([1.0, 2.0], 0.5, 1.0), ([1.0, 2.0, 3.0], 0.95, 3.0)],
)
def test_a_percentile_is_a_value_that_was_measured(
    values: list[float], share: float, expected: float | None
) -> None:
    assert percentile(values, share) == expected


def a_turn(now: float, before: float) -> Turn:
    """Requests that take so long per token."""
    return Turn(*([Sample(ttft=0.1, tpot=tpot)] * 3 for tpot in (now, before)))


SLOW, EQUAL = a_turn(0.12, 0.02), a_turn(0.02, 0.02)
SLOWER = "TPOT 120 ms, 6.00 times the 20 ms of tiny.v1; at most 1.25 times allowed"


@pytest.mark.parametrize(
    ("limits", "now", "turns", "missed"),
    [
        ({}, figures(), [EQUAL], []),
        ({"ttft_p95": "200ms", "tpot_p95": "30ms"}, figures(), [], []),
        (
            {"ttft_p95": "150ms", "tpot_p95": 0.01},
            figures(),
            [],
            [
                "TTFT p95 200 ms; at most 150 ms allowed",
                "TPOT p95 30 ms; at most 10 ms allowed",
            ],
        ),
        (
            {"tpot_p95": "30ms"},
            figures(tpot_p95=None),
            [],
            ["no answer shows its TPOT, which is limited: each came in one piece"],
        ),
        ({"max_slowdown": 1.25}, figures(), [SLOW] * 3 + [EQUAL], [SLOWER]),
        ({"max_slowdown": 1.25}, figures(), [SLOW] * 2 + [EQUAL], []),
        ({"max_slowdown": 1.25}, figures(), [], []),
        ({}, figures(), [SLOW], []),
        ({"max_slowdown": 2}, figures(), [a_turn(0.0012, 0.0003)], []),
        (
            {},
            figures(failed=2, problem="HTTP 503: full"),
            [],
            ["2 of 32 requests failed: HTTP 503: full"],
        ),
    ],
)
def test_a_limit_is_missed_with_both_numbers(
    limits: dict[str, Any], now: LoadFigures, turns: list[Turn], missed: list[str]
) -> None:
    assert list(judge_load(a_load(**limits), now, turns, "tiny.v1")) == missed


def test_what_was_not_answered_at_all_misses_no_other_limit() -> None:
    nothing = LoadFigures(requests=8, failed=8, problem="cut")
    assert judge_load(a_load(ttft_p95="1s"), nothing) == ("8 of 8 requests failed: cut",)


def test_a_load_has_requests_enough_to_be_parted() -> None:
    with pytest.raises(ValidationError, match="requests: 32 are too few for a concurrency of 16"):
        a_load(concurrency=16)
    assert a_load(concurrency=16, requests=64)


def test_what_may_only_warn_does_not_fail() -> None:
    missed = Acceptance(figures=FIGURES, misses=("TTFT p95 2.00 s; at most 1.00 s allowed",))
    assert missed.failure
    warned = missed.model_copy(update={"warn_only": True})
    assert (warned.failure, warned.summary) == (None, f"warning: {missed.summary}")


def test_the_summary_names_the_figures_of_both() -> None:
    outcome = Acceptance(figures=FIGURES, before=figures(tpot_p50=None), against="tiny.v1")
    assert outcome.summary == (
        "TTFT p50 100 ms p95 200 ms, TPOT p50 20 ms p95 30 ms, 100 tokens/s, goodput"
        " 2 requests/s (tiny.v1: TTFT p50 100 ms p95 200 ms, 100 tokens/s, goodput"
        " 2 requests/s)"
    )


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_passes_and_a_slower_engine_does_not(seed: int) -> None:
    chance, load = random.Random(seed), a_load(max_slowdown=1.25)
    assert _passes(load, chance, slower_by=0.0)
    assert not _passes(load, chance, slower_by=0.1)


def _passes(load: AcceptanceSpec, chance: random.Random, slower_by: float) -> bool:
    """Whether a round finds nothing wrong, on machines where times vary by half."""
    turns: list[Turn] = []
    for _ in range(ROUNDS):
        for _ in range(4):
            turns.append(Turn(_measured(chance, slower_by), _measured(chance, 0.0)))
        if not judge_load(load, FIGURES, turns, "a"):
            return True
    return False


def _measured(chance: random.Random, slower_by: float) -> list[Sample]:
    """Eight requests; whatever else the machine does slows all of them, by another share each."""
    return [
        Sample(
            ttft=0.1 * chance.lognormvariate(0, 0.5),
            tpot=0.02 * chance.lognormvariate(0, 0.5) + slower_by,
            tokens=64,
        )
        for _ in range(8)
    ]
