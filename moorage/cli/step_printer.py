"""Progress and questions of a flow on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import wrap
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from rich import progress
from rich.console import Console, RenderableType
from rich.markup import escape

from moorage.cli.output import confirm, err
from moorage.common.units import human_bytes, human_seconds

if TYPE_CHECKING:
    from moorage.operations.redeploy.intent import Answer, Question
    from moorage.releases.release import StepRecord

NARROWEST = 20
"""Least columns for the summary of a step on a terminal."""

SIGN_OF_LIFE_SECONDS = 30.0
"""How often running steps are printed where no bar can show them, such as in a CI log."""


class StepPrinter(progress.Progress):
    """Prints the steps of a flow and asks its questions.

    Without a terminal, prints a line for each finished step, and repeated lines for long steps.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}"),
            progress.TimeElapsedColumn(),
            _WhileTransferring(progress.BarColumn(bar_width=30)),
            _WhileTransferring(progress.DownloadColumn(binary_units=True)),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._steps: dict[str, progress.TaskID] = {}
        self._asking = Lock()

    def started(self, step: str) -> None:
        """Show a spinner."""
        self._steps[step] = self.add_task(step, total=None)

    def progressed(self, step: str, done: int, total: int) -> None:
        """Move the bar."""
        self.update(self._steps[step], completed=done, total=total)

    def ended(self, record: StepRecord, error: BaseException | None) -> None:
        """Replace the spinner by a line."""
        if (task := self._steps.pop(record.name, None)) is not None:
            self.remove_task(task)
        mark = "[green]✓[/]" if error is None else "[red]✗[/]"
        summary = record.summary if error is None else _reason(error)
        self._print_step(mark, record.name, record.seconds, summary)

    def noted(self, text: str) -> None:
        """Print a line between the steps."""
        self._print(f"[yellow]•[/] {escape(self._folded(text, len('• ')))}")

    @contextmanager
    def signs_of_life(self, seconds: float = SIGN_OF_LIFE_SECONDS) -> Iterator[None]:
        """Without a terminal, print the running steps from time to time."""
        ended = Event()

        def print_steps() -> None:
            while not ended.wait(seconds):
                for task in self.tasks:
                    if (elapsed := task.elapsed or 0) >= seconds / 2:
                        self._print_step("…", task.description, elapsed, _transferred(task))

        if self.console.is_terminal:
            yield
            return
        printing = Thread(target=print_steps, daemon=True)
        printing.start()
        try:
            yield
        finally:
            ended.set()
            printing.join()

    def _print_step(self, mark: str, name: str, seconds: float, summary: str) -> None:
        took = human_seconds(seconds)
        prefix, colon, step = name.rpartition(": ")  # the flow's name, if several run
        name = f"{prefix}{colon}{step:<8}"
        shown = escape(self._folded(summary, len(f"✓ {name} {took:>9}  ")))
        self._print(f"{mark} {name} [dim]{took:>9}[/]  {shown}")

    def _folded(self, summary: str, column: int) -> str:
        """The text wrapped and indented to a column; unchanged without a terminal."""
        if not self.console.is_terminal:
            return summary
        width = max(self.console.width - column, NARROWEST)
        lines = wrap(summary, width, break_long_words=False, break_on_hyphens=False)
        return f"\n{' ' * column}".join(lines)

    def _print(self, line: str) -> None:
        self.console.print(line, highlight=False, soft_wrap=True)

    def ask(self, question: Question) -> Answer | None:
        """Ask a question at the terminal, without a time limit; None without a terminal.

        Questions of several models are asked one after the other.
        """
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        # Few flows ask.
        from moorage.adapters.system.process import command_line_user  # noqa: PLC0415
        from moorage.operations.redeploy.intent import Answer  # noqa: PLC0415

        with self._asking:
            self.stop()
            try:
                err.print(question.plan, markup=False, highlight=False)
                approve = confirm(f"Approve {', '.join(question.models)}?")
                return Answer(approve=approve, note=f"by {command_line_user().account}")
            finally:
                self.start()


@contextmanager
def printed_steps() -> Iterator[StepPrinter]:
    """Print the steps of a flow to standard error, with signs of life without a terminal."""
    with StepPrinter(err) as printer, printer.signs_of_life():
        yield printer


def _transferred(task: progress.Task) -> str:
    """Bytes done and total of a step; empty if it transfers none."""
    if not task.total:
        return ""
    return f"{human_bytes(int(task.completed))} of {human_bytes(int(task.total))}"


def _reason(error: BaseException) -> str:
    """The first line of an error; `interrupted` for an empty one, such as a signal's."""
    return str(error).partition("\n")[0] or "interrupted"


class _WhileTransferring(progress.ProgressColumn):
    """A column that is empty for steps without a transfer."""

    def __init__(self, column: progress.ProgressColumn) -> None:
        super().__init__()
        self._column = column

    def render(self, task: progress.Task) -> RenderableType:
        """The column, once the number of bytes is known; else empty."""
        return "" if task.total is None else self._column(task)
