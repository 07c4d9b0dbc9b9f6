"""How golden prompts are sent, what counts as an answer, and what is too slow."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.readiness.answers import Generation
from moorage.readiness.smoke_test import (
    SHOWN,
    Answer,
    SmokeTestResult,
    comparable,
    gate_of,
    judge_answer,
    read_answer,
    request_of,
    speed_of,
)
from moorage.spec import PromptSpec
from tests.builders import a_spec


def asks(**fields: Any) -> PromptSpec:
    return PromptSpec.model_validate({"prompt": "2+2=", **fields})


def answers(text: str, finish: str = "stop", tokens: int | None = 3) -> dict[str, Any]:
    usage = {} if tokens is None else {"usage": {"completion_tokens": tokens}}
    return {"choices": [{"message": {"content": text}, "finish_reason": finish}], **usage}


def an_answer(seconds: float, tokens: int | None = 10, wrong: str = "") -> Answer:
    return Answer(asked="2+2=", answered="4", seconds=seconds, tokens=tokens, wrong=wrong)


def test_a_prompt_is_a_message_where_the_model_talks_and_a_text_where_it_does_not() -> None:
    path, body = request_of(a_spec(), asks(max_tokens=7), chat=True)
    assert path == "/v1/chat/completions"
    assert body == {
        "model": "tiny",
        "max_tokens": 7,
        "temperature": 0,
        "stream": False,
        "messages": [{"role": "user", "content": "2+2="}],
    }
    talk = PromptSpec.model_validate(
        {"messages": [{"role": "system", "content": "Be brief."}, {"content": "Hello"}]}
    )
    assert [m["role"] for m in request_of(a_spec(), talk, chat=True)[1]["messages"]] == [
        "system",
        "user",
    ]
    path, body = request_of(a_spec(), talk, chat=False)
    assert (path, body["prompt"]) == ("/v1/completions", "Be brief.\nHello")


@pytest.mark.parametrize(
    ("status", "answer", "expected"),
    [
        (200, answers("4"), ("4", 3, "")),
        (200, answers("4", "length", None), ("4", None, "")),
        (200, {"choices": [{"text": "4", "finish_reason": "stop"}]}, ("4", None, "")),
        (200, answers("", tokens=0), ("", None, "no token was generated")),
        (200, answers("4", "abort"), ("4", None, "finish reason 'abort'")),
        (200, "<html>", ("", None, "finish reason None")),
        (500, "broken", ("", None, "HTTP 500: broken")),
        (0, "ReadTimeout", ("", None, "ReadTimeout")),
    ],
)
def test_only_what_was_generated_to_its_end_is_an_answer(
    status: int, answer: Any, expected: tuple[str, int | None, str]
) -> None:
    found = read_answer(status, answer)
    assert (found.content, found.tokens, found.wrong) == expected


@pytest.mark.parametrize(
    ("found", "seconds", "wrong"),
    [
        (True, 1.0, ""),
        (False, 1.0, "'4' is not in it"),
        (None, 1.0, "searching it for '4' took too long: the pattern backtracks"),
        (True, 3.0, "it took 3.00 s, more than 2 s"),
    ],
)
def test_an_answer_passes_with_its_pattern_and_in_time(
    found: bool | None, seconds: float, wrong: str
) -> None:
    prompt = asks(expect="4", max_seconds=2)
    assert judge_answer(prompt, Generation(text="4", tokens=1), seconds, found).wrong == wrong


@pytest.mark.parametrize(("finish", "is_advised"), [("length", True), ("stop", False)])
def test_a_model_whose_reasoning_took_all_tokens_needs_more(finish: str, is_advised: bool) -> None:
    answer = Generation(text=None, finish=finish, tokens=64)
    wrong = judge_answer(asks(expect="4"), answer, 1.0, found=False).wrong
    assert ("raise `max_tokens`" in wrong) == is_advised


def test_long_answers_are_cut() -> None:
    answer = judge_answer(asks(), Generation(text="x" * 5000, tokens=1), 1.0, found=True)
    assert len(answer.answered) == SHOWN


@pytest.mark.parametrize(
    ("seconds", "least", "wrong"),
    [
        (1.0, 0.8, ""),
        (1.25, 0.8, ""),
        (2.0, 0.8, "5 tokens/s, 0.50 of the 10 of tiny.v1; 0.8 required"),
        (2.0, None, ""),
    ],
)
def test_a_replica_may_be_slower_than_the_release_before_only_by_so_much(
    seconds: float, least: float | None, wrong: str
) -> None:
    gate = gate_of("w", [an_answer(seconds)], before=("tiny.v1", 10.0), least=least)
    assert gate.wrong == (f"w: {wrong}" if wrong else "")
    assert (gate.before, gate.against) == (10.0, "tiny.v1")


def test_the_first_release_is_compared_with_nothing() -> None:
    gate = gate_of("w", [an_answer(2.0)], least=0.8)
    assert (gate.tokens_per_second, gate.wrong) == (5.0, "")
    assert gate.summary == "1 prompts, slowest 2.00 s, 5 tokens/s"


def test_an_engine_that_counts_no_tokens_cannot_be_compared() -> None:
    answer = an_answer(1.0, tokens=None)
    assert gate_of("w", [answer]).wrong == ""
    gate = gate_of("w", [answer], before=("tiny.v1", 10.0), least=0.8)
    assert "does not count its tokens" in gate.wrong


def test_what_was_asked_and_answered_is_told_of_a_wrong_answer() -> None:
    gate = gate_of("w", [an_answer(1.0), an_answer(1.0, wrong="'5' is not in it")])
    assert gate.wrong == "w: asked '2+2=', answered '4': '5' is not in it"
    assert gate.summary == gate.wrong


def test_speeds_are_compared_only_for_the_same_questions() -> None:
    assert comparable([asks(expect="4")], [asks(max_seconds=9)])
    assert not comparable([asks()], [asks(max_tokens=3)])
    assert not comparable([asks()], [])


def test_the_speed_of_a_release_is_the_mean_of_its_replicas() -> None:
    gates = [gate_of("a", [an_answer(1.0)]), gate_of("b", [an_answer(2.0)])]
    assert speed_of(gates) == 7.5
    assert speed_of([]) is None
    assert speed_of([*gates, SmokeTestResult(workload="c", answers=())]) is None
