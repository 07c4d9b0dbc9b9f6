"""A question at the terminal, where there is no Prefect server on which a run could wait."""

from __future__ import annotations

import sys

import typer

from moorage.cli.output import err
from moorage.cli.progress import StepPrinter
from moorage.operations.redeploy.question import Answer, Question


class TerminalAsker:
    """Asks whoever started the command; it waits without a limit, for somebody is there.

    Args:
        printer: It shows the steps, and is silent meanwhile.
    """

    def __init__(self, printer: StepPrinter) -> None:
        self._printer = printer

    def __call__(self, question: Question) -> Answer | None:
        """The answer; None where no person is at a terminal."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        with self._printer.silent():
            err.print(question.plan, markup=False, highlight=False)
            return Answer(approve=typer.confirm("Shall this be done?", err=True))
