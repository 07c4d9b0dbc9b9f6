"""Step gate: what is asked how often, and what it is compared with."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.readiness.protocol import Probe
from moorage.readiness.smoke_test import Answer, SmokeTestResult, gate_failure
from moorage.releases.release import Release
from moorage.spec import Mode
from tasks import smoke_test as step
from tests.builders import a_plan, a_profile, a_release, a_spec, a_workload

PLAN = a_plan(release="tiny.v2")
ASKED = {"prompts": [{"prompt": "2+2=", "expect": "4", "max_seconds": 1}]}


class Engine:
    """Answers with so many tokens, one answer after the other."""

    def __init__(self, tokens: Iterator[int], pause: float = 0.02, text: str = "4") -> None:
        self.paths: list[str] = []
        self._tokens, self._pause, self._text = tokens, pause, text

    async def ask(self, _endpoint: str, probe: Probe, _timeout: float, _key: str) -> Any:
        self.paths.append(probe.path)
        await asyncio.sleep(self._pause)
        choice = {"message": {"content": self._text}, "finish_reason": "stop"}
        return 200, {"choices": [choice], "usage": {"completion_tokens": next(self._tokens)}}


def gated(
    monkeypatch: pytest.MonkeyPatch, engine: Engine, before: Release | None, **compare: Any
) -> SmokeTestResult:
    monkeypatch.setattr(step, "ask", engine.ask)
    spec = a_spec(readiness={**ASKED, "compare": compare})
    return asyncio.run(step._test_replica(spec, a_profile(), a_workload(), "", before))


def before(tokens_per_second: float, **prompt: Any) -> Release:
    gate = SmokeTestResult(workload="w", answers=(), tokens_per_second=tokens_per_second)
    readiness = {"prompts": [{**ASKED["prompts"][0], **prompt}]}
    return a_release(spec=a_spec(readiness=readiness), gate=(gate,))


def test_a_good_answer_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(iter([5]))
    gate = gated(monkeypatch, engine, None)
    assert (gate.wrong, len(engine.paths), gate.answers[0].answered) == ("", 1, "4")
    assert gate_failure((gate,)) is None


def test_what_is_only_too_slow_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(iter([1, 1000]))
    gate = gated(monkeypatch, engine, before(1000.0), min_tokens_per_second_ratio=0.8)
    assert (gate.wrong, len(engine.paths)) == ("", 2)


def test_what_stays_too_slow_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(iter([1] * 9))
    gate = gated(monkeypatch, engine, before(1000.0), min_tokens_per_second_ratio=0.8)
    assert len(engine.paths) == step.ROUNDS
    failure = gate_failure((gate,))
    assert failure
    assert "of the 1000 of tiny.v1" in failure.detail
    assert failure.cause is Cause.GATE_FAILED


def test_a_release_that_was_asked_something_else_is_not_compared_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = before(1000.0, max_tokens=3)
    gate = gated(monkeypatch, Engine(iter([1])), other, min_tokens_per_second_ratio=0.8)
    assert (gate.wrong, gate.before, gate.against) == ("", None, "")


def test_a_wrong_answer_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(iter([5] * 9), text="five")
    assert "'4' is not in it" in gated(monkeypatch, engine, None).wrong
    assert len(engine.paths) == 1


def test_an_answer_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = gated(monkeypatch, Engine(iter([5]), pause=60), None)
    assert "no answer within 1 s" in gate.wrong


@pytest.mark.parametrize("readiness", [ASKED, {"acceptance": {}}])
@pytest.mark.parametrize(("mode", "refused"), [(Mode.EMBEDDING, True), (Mode.COMPLETION, False)])
def test_only_models_that_talk_have_golden_prompts_or_a_load(
    mode: Mode, refused: bool, readiness: dict[str, Any]
) -> None:
    spec, profile = a_spec(readiness=readiness), a_profile(mode=mode)
    step.must_talk(a_spec(), profile)
    if not refused:
        return step.must_talk(spec, profile)
    with pytest.raises(Failure) as caught:
        step.must_talk(spec, profile)
    assert caught.value.cause is Cause.BAD_SPEC
    return None


def test_every_replica_that_fails_is_told() -> None:
    gates = tuple(
        SmokeTestResult(
            workload=name, answers=(Answer(asked="a", seconds=1),), wrong=f"{name}: slow"
        )
        for name in ("a", "b")
    )
    failure = gate_failure(gates)
    assert failure
    assert failure.detail == "a: slow; b: slow"
