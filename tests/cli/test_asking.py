"""The question at the terminal."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from moorage.cli import asking
from moorage.cli.asking import TerminalAsker
from moorage.cli.progress import StepPrinter
from moorage.operations.redeploy.question import Answer, Question

QUESTION = Question(models=("tiny",), plan="It would replace tiny.v1.", seconds=60)


class Terminal(io.StringIO):
    """What a person types, or sees."""

    def isatty(self) -> bool:
        return True


def asker() -> TerminalAsker:
    return TerminalAsker(StepPrinter(Console(file=io.StringIO())))


def test_where_nobody_is_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert asker()(QUESTION) is None


@pytest.mark.parametrize(("typed", "approve"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_person_sees_the_plan_and_answers(
    monkeypatch: pytest.MonkeyPatch, typed: str, approve: bool
) -> None:
    seen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", seen)
    monkeypatch.setattr(asking, "err", Console(file=seen))
    assert asker()(QUESTION) == Answer(approve=approve)
    assert "replace tiny.v1" in seen.getvalue()
