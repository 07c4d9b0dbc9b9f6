"""The question at the terminal."""

from __future__ import annotations

import io
import sys
import time

import pytest
from rich.console import Console

from moorage.cli import progress
from moorage.cli.progress import StepPrinter, TerminalAsker, counting
from moorage.operations.redeploy.intent import Answer, Question

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
    monkeypatch.setattr(progress, "err", Console(file=seen))
    assert asker()(QUESTION) == Answer(approve=approve)
    assert "replace tiny.v1" in seen.getvalue()


@pytest.mark.parametrize(
    ("quiet", "terminal", "is_shown"), [(0.0, True, True), (60.0, True, False), (0.0, False, False)]
)
def test_hosts_are_counted_while_they_answer(
    monkeypatch: pytest.MonkeyPatch, quiet: float, terminal: bool, is_shown: bool
) -> None:
    monkeypatch.setattr(progress, "QUIET_SECONDS", quiet)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=80)
    with counting(console, "looking at hosts", 3) as done:
        done()
        time.sleep(0.3)
    assert ("looking at hosts" in screen.getvalue()) == is_shown
    assert is_shown or screen.getvalue() == ""
