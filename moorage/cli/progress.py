"""What the terminal shows while work goes on: steps, counts, and questions."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from moorage.cli.output import err
from moorage.common.units import human_seconds
from moorage.operations.redeploy.intent import Answer, Question
from moorage.releases.release import StepRecord

QUIET_SECONDS = 2.0
"""What takes no longer needs no progress."""


class StepPrinter:
    """Listens to a flow and prints its steps.

    Args:
        console: Where to; on something that is no terminal only the finished lines appear.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            BarColumn(bar_width=30),
            DownloadColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> StepPrinter:
        self._live.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Leave the terminal to somebody else, such as a question."""
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()

    def started(self, step: str) -> None:
        """Show a spinner."""
        self._tasks[step] = self._live.add_task(step, total=None)

    def progressed(self, step: str, done: int, total: int) -> None:
        """Move the bar."""
        self._live.update(self._tasks[step], completed=done, total=total)

    def ended(self, record: StepRecord, error: BaseException | None) -> None:
        """Replace the spinner by a line."""
        if (task := self._tasks.pop(record.name, None)) is not None:
            self._live.remove_task(task)
        mark = "[green]✓[/]" if error is None else "[red]✗[/]"
        took = human_seconds(record.seconds)
        summary = record.summary if error is None else str(error).partition("\n")[0]
        self._console.print(
            f"{mark} {record.name:<8} [dim]{took:>9}[/]  {escape(summary)}",
            highlight=False,
            soft_wrap=True,
        )

    def noted(self, text: str) -> None:
        """Print a line between the steps."""
        self._console.print(f"[yellow]•[/] {escape(text)}", highlight=False, soft_wrap=True)


@contextlib.contextmanager
def counting(console: Console, what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, once it takes a while; gives what is called for each that is done.

    Args:
        console: Where to; nothing appears where it is no terminal.
        what: What is counted.
        total: How many there are.
    """
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = progress.add_task(what, total=total)
    timer = threading.Timer(QUIET_SECONDS, progress.start)
    timer.daemon = True
    if console.is_terminal:
        timer.start()
    try:
        yield lambda: progress.advance(task)
    finally:
        timer.cancel()
        if progress.live.is_started:
            progress.stop()


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
