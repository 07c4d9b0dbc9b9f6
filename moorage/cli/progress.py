"""Steps on the terminal: a spinner with elapsed time, a bar for bytes, a line for what is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from moorage.common.units import human_seconds
from moorage.releases.release import StepRecord


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
        told = record.summary if error is None else str(error).partition("\n")[0]
        self._console.print(
            f"{mark} {record.name:<8} [dim]{took:>9}[/]  {escape(told)}",
            highlight=False,
            soft_wrap=True,
        )

    def noted(self, text: str) -> None:
        """Print a line between the steps."""
        self._console.print(f"[yellow]•[/] {escape(text)}", highlight=False, soft_wrap=True)
