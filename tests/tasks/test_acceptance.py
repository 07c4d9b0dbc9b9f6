"""Step acceptance: who is loaded, how often, and what it is compared with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from moorage.adapters.engines.engine_http import Question
from moorage.common.failures import Cause
from moorage.readiness.acceptance import ROUNDS, Acceptance, LoadFigures, Sample
from moorage.releases.release_row import ReleaseRow
from moorage.spec.acceptance import TURNS
from tasks import acceptance as step
from tests.builders import a_plan, a_profile, a_release, a_row, a_spec, a_workload

NEW, OLD = "http://new", "http://old"
LOAD = {"requests": 8, "concurrency": 2, "max_slowdown": 1.5}


class Engines:
    """Answer as quickly as each is told to; None = with an error.

    `dies` is one that answers no more after so many loads, having used up the time of its own.
    """

    def __init__(self, dies: tuple[str, int] = ("", 0), **tpot: float | None) -> None:
        self.requests: list[str] = []
        self.prompts: list[str] = []
        self.at_once: list[int] = []
        self._tpot, (self._mortal, self._left) = tpot, dies

    async def send(
        self, questions: Sequence[Question], _concurrency: int, seconds: float
    ) -> list[Sample]:
        """Like `send_load`."""
        name = questions[0].url.split("/")[2]
        self.at_once.append(len(questions))
        self.requests += [name] * len(questions)
        self.prompts += [f"{name} {_prompt(one).split()[0]}" for one in questions]
        tpot = self._tpot[name]
        if name == self._mortal:
            self._left -= 1
            tpot = tpot if self._left >= 0 else None
        if seconds <= 0 or tpot is None:
            return [Sample(wrong="cut")] * len(questions)
        return [Sample(ttft=0.1, tpot=tpot, tokens=9)] * len(questions)


def _prompt(question: Question) -> str:
    return str(question.body["messages"][0]["content"])


def loaded(
    monkeypatch: pytest.MonkeyPatch, engines: Engines, *, old: bool = True, **load: Any
) -> Acceptance:
    monkeypatch.setattr(step, "send_load", engines.send)
    spec = a_spec(readiness={"acceptance": {**LOAD, **load}})
    plan = a_plan(release="tiny.v2")
    new = (a_workload("new", endpoint=NEW), a_workload("other", endpoint=NEW, replica=1))
    return asyncio.run(
        step.acceptance(spec, a_profile(), plan, new, serving_release() if old else None)
    )


def serving_release() -> ReleaseRow:
    plan = a_plan()
    old = (a_workload("old", endpoint=OLD),)
    return a_row(a_release(plan=plan, profile=a_profile()), workloads=old)


def test_every_replica_gets_the_whole_load_and_the_release_before_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engines = Engines(new=0.01, old=0.01)
    outcome = loaded(monkeypatch, engines)
    assert (outcome.misses, outcome.rounds, outcome.against) == ((), 1, "tiny.v1")
    assert (outcome.figures.requests, outcome.before and outcome.before.requests) == (16, 8)
    warm_up = 2
    assert engines.requests.count("new") == 2 * (8 + warm_up)
    assert engines.requests.count("old") == 8 + warm_up


def test_no_engine_meets_a_prompt_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    engines = Engines(new=0.1, old=0.01)
    loaded(monkeypatch, engines)
    of_old = [prompt for prompt in engines.prompts if prompt.startswith("old")]
    assert len(of_old) == len(set(of_old)) == 2 + 8 * ROUNDS


def test_a_release_fails_that_is_slower_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = loaded(monkeypatch, Engines(new=0.1, old=0.01))
    assert outcome.rounds == ROUNDS
    assert outcome.failure
    assert "10.00 times the 10 ms of tiny.v1" in outcome.failure.detail
    assert outcome.failure.cause is Cause.ACCEPTANCE_FAILED


def test_a_release_before_that_dies_under_the_load_is_compared_with_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engines = Engines(new=0.1, old=0.01, dies=("old", 1 + TURNS + 1))
    outcome = loaded(monkeypatch, engines)
    assert (outcome.misses, outcome.before, outcome.rounds) == ((), None, 2)
    assert engines.requests.count("old") == 2 + 8 + 2 * 2, "its first failure was its last request"


def test_a_release_alone_gets_its_load_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    engines = Engines(new=0.1)
    loaded(monkeypatch, engines, old=False)
    assert engines.at_once == [2, 2, 8, 8], "a few to warm up, then all, at each of two replicas"


def test_what_may_only_warn_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = loaded(monkeypatch, Engines(new=0.1, old=0.01), warn_only=True)
    assert outcome.misses
    assert outcome.failure is None


def test_one_good_round_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter([LoadFigures(requests=8, tpot_p95=1.0), LoadFigures(requests=8, tpot_p95=0.1)])
    monkeypatch.setattr(step, "load_figures", lambda *_: next(rounds))
    outcome = loaded(monkeypatch, Engines(new=0.01), old=False, tpot_p95="500ms")
    assert (outcome.rounds, outcome.misses) == (2, ())


@pytest.mark.parametrize("old", [True, False])
def test_a_release_before_that_does_not_answer_is_not_compared_with(
    monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    engines = Engines(new=5.0, old=None)
    outcome = loaded(monkeypatch, engines, old=old)
    assert (outcome.before, outcome.against, outcome.misses) == (None, "", ())
    assert engines.requests.count("old") == (2 if old else 0)


def test_a_request_that_fails_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = loaded(monkeypatch, Engines(new=None), old=False)
    assert outcome.misses == ("16 of 16 requests failed: cut",)
