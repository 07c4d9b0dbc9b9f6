from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.gateway.usage import Usage, count, spent


def line(**changes: Any) -> bytes:
    entry = {
        "at": "2026-11-23T07:00:00.000Z",
        "caller": "ann",
        "model": "llama",
        "endpoint": "127.0.0.1:40000",
        "status": 200,
        "prompt_tokens": 7,
        "completion_tokens": 5,
    }
    return json.dumps(entry | changes).encode()


def test_lines_are_summed_by_caller_model_and_day() -> None:
    lines = [
        line(),
        line(completion_tokens=1),
        line(status=503, prompt_tokens=None, completion_tokens=None),
        line(caller=None),
        line(at="2026-11-24T00:00:00.000Z"),
    ]
    day = {"caller": "ann", "model": "llama", "day": "2026-11-23"}
    assert count(lines) == (
        Usage(**day, requests=3, failed=1, prompt_tokens=14, completion_tokens=6),
        Usage(**day | {"caller": ""}, requests=1, prompt_tokens=7, completion_tokens=5),
        Usage(**day | {"day": "2026-11-24"}, requests=1, prompt_tokens=7, completion_tokens=5),
    )


@pytest.mark.parametrize(
    "bad",
    [
        line(endpoint=None),
        b"",
        b'{"at": "2026',
        b"[]",
        line(model=3),
        line(model="m" * 201),
        line(at=None),
    ],
)
def test_a_line_that_no_engine_was_asked_for_or_that_is_broken_counts_nothing(bad: bytes) -> None:
    assert count([bad]) == ()


@pytest.mark.parametrize(
    ("reported", "counted"),
    [
        (999_999_999, 999_999_999),
        (1_000_000_000, 0),
        (9e18, 0),
        (2**63, 0),
        (1e300, 0),
        (-1, 0),
        (1.5, 1),
    ],
)
def test_a_request_counts_though_its_engine_reports_an_impossible_number(
    reported: float, counted: int
) -> None:
    [found] = count([line(prompt_tokens=reported)])
    assert (found.requests, found.prompt_tokens, found.completion_tokens) == (1, counted, 5)


@pytest.mark.parametrize(
    ("status", "failed"),
    [(200, 0), (302, 0), (0, 0), (400, 0), (404, 0), (429, 0), (500, 1), (503, 1), (504, 1)],
)
def test_a_mistake_of_the_caller_is_no_failed_request(status: int, failed: int) -> None:
    assert [one.failed for one in count([line(status=status)])] == [failed]


def used(caller: str, prompt: int, completion: int, model: str = "llama") -> Usage:
    numbers = {"prompt_tokens": prompt, "completion_tokens": completion}
    return Usage(caller=caller, model=model, day="2026-11-23", requests=1, **numbers)


def test_prompts_and_answers_of_all_models_count_together() -> None:
    day = [used("ann", 600, 300), used("ann", 50, 50, "phi"), used("bob", 500, 499)]
    limits = [("ann", "1k/day"), ("bob", "1k/day"), ("eve", ""), ("joe", "1/day")]
    assert spent(limits, day) == ("ann",)
