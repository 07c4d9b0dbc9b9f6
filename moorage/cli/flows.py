"""Running flows from the command line, with their progress and questions on the terminal."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeVar, cast

import typer
from rich import progress
from rich.console import Console, RenderableType
from rich.markup import escape

from moorage.adapters.prefect.home_server import (
    CLIENT_DEFAULTS,
    kept_server,
    may_know_a_server,
    running_server,
)
from moorage.adapters.prefect.new_database import provide_database
from moorage.adapters.system.settings import Settings
from moorage.cli.fork_server import start_fork_server
from moorage.cli.output import LostApi, err, leave
from moorage.common.failures import Cause, Failure
from moorage.common.units import human_seconds
from moorage.operations.flow_result import FlowResult
from moorage.operations.redeploy.intent import Answer, Question
from moorage.policy.request import Channel
from moorage.releases.release import StepRecord

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State

R = TypeVar("R")

NARROWEST = 20
"""Columns that the summary of a step has at least on a terminal."""


def call_flow(
    name: str,
    *parameters: Any,
    as_json: bool,
    failed_too: bool = False,
) -> FlowResult[Any]:
    """Run the flow `flows.NAME.NAME` with its parameters; see `run_flow`."""

    def start() -> Awaitable[Any]:
        flow = getattr(import_module(f"flows.{name}"), name)
        return cast("Awaitable[Any]", flow(*parameters, return_state=True))

    return run_flow(start, as_json=as_json, failed_too=failed_too)


def call_dry_run(name: str, *parameters: Any, as_json: bool) -> FlowResult[Any]:
    """Call `flows.dry_run.NAME` with its parameters: no flow run, no server, no Prefect."""
    with _nothing_begun(as_json=as_json):
        from flows import dry_run  # noqa: PLC0415  (imports all steps)
        from tasks.journal import failure_of, journal, listening  # noqa: PLC0415  (as above)
        from tasks.policy import channel_scope  # noqa: PLC0415  (as above)

    async def main() -> FlowResult[Any]:
        with _cancelled_by_sigterm(), journal() as opened:
            context = dry_run.RunContext(opened, "", datetime.now(UTC))
            try:
                return cast("FlowResult[Any]", await getattr(dry_run, name)(context, *parameters))
            except Exception as error:
                if (failure := failure_of(error)) is None:
                    raise
                raise failure from None

    with channel_scope(Channel.CLI):
        if as_json:
            return asyncio.run(main())
        with StepPrinter(err) as printer, listening(printer):
            return asyncio.run(main())


def run_flow(
    start: Callable[[], Awaitable[State[R]]], *, as_json: bool, failed_too: bool = False
) -> FlowResult[R]:
    """Run a flow in this process, on the server of PREFECT_API_URL or on this home's own.

    Args:
        start: Called after Prefect's settings are in place; returns the flow's final state.
        as_json: Whether the output is for a program: then progress goes nowhere.
        failed_too: Whether a run that failed has a result too, which is not raised.
    """
    environment = dict(os.environ)
    _prepare_prefect()
    with _nothing_begun(as_json=as_json), _shown_start(as_json=as_json), _server():
        # Importing Prefect takes longer than refusing a bad spec should.
        from flows.flow_context import with_result  # noqa: PLC0415
        from tasks.journal import listening  # noqa: PLC0415
        from tasks.policy import asking, channel_scope  # noqa: PLC0415

    async def main() -> FlowResult[R]:
        with _cancelled_by_sigterm():
            state = with_result(await start())
            result = await state.aresult(raise_on_failure=not failed_too)
        if isinstance(result, Exception):
            raise result
        return FlowResult(name=state.name or "", message=state.message or "", result=result)

    # Prefect takes SIGTERM while a flow runs, undoes, and sends it again to whoever had it before.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with _later_ones_forked(environment), _prefect_failures(), channel_scope(Channel.CLI):
        if as_json:
            return asyncio.run(main())
        with StepPrinter(err) as printer, listening(printer), asking(printer.ask):
            return asyncio.run(main())


@contextmanager
def _later_ones_forked(environment: Mapping[str, str]) -> Iterator[None]:
    """Have later commands with these variables forked, where a server of this home runs."""
    try:
        yield
    finally:
        settings = Settings()
        if settings.forked:
            start_fork_server(settings.root, environment)


@contextmanager
def _shown_start(*, as_json: bool) -> Iterator[None]:
    """Tell a person what takes seconds before the first step."""
    if as_json:
        yield
        return
    with err.status("Prefect starts") as shown:
        settings = Settings()
        if settings.server == "kept" and running_server(settings.root) is None:
            shown.update("Prefect starts, and its server, which is kept for later commands")
        yield


@contextmanager
def _server() -> Iterator[None]:
    """Sign in to the server once the block has imported the flow; it may start meanwhile.

    It starts before Prefect is imported, which takes as long, unless Prefect may know another.
    """
    settings = Settings()
    with ThreadPoolExecutor(1) as beside:
        start = partial(beside.submit, kept_server, settings.root, settings.server_idle_seconds)
        kept = settings.server == "kept"
        starting = start() if kept and not may_know_a_server(Path.cwd()) else None
        from prefect.settings import get_current_settings  # noqa: PLC0415  (imports Prefect)

        if get_current_settings().api.url or not kept:
            yield
            from moorage.adapters.prefect.api_login import sign_in  # noqa: PLC0415  (as above)

            return sign_in()
        starting = starting or start()
        yield
        from moorage.adapters.prefect.api_login import use_kept_server  # noqa: PLC0415  (as above)

        use_kept_server(starting.result())


@contextmanager
def _cancelled_by_sigterm() -> Iterator[None]:
    """Let SIGTERM cancel this task, as Ctrl-C does, instead of raising anywhere."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task
    cancel = task.cancel
    before = signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(cancel))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _prefect_failures() -> Iterator[None]:
    """Raise what ends a flow from outside as a failure, or as an interruption."""
    from prefect.exceptions import Abort, TerminationSignal  # noqa: PLC0415

    from flows.flow_context import has_unreported_end, unreported_failure  # noqa: PLC0415
    from moorage.adapters.prefect.api_errors import is_login_refused, server_failure  # noqa: PLC0415
    from moorage.adapters.prefect.api_login import login_refused  # noqa: PLC0415
    from moorage.adapters.system.threads import was_interrupted  # noqa: PLC0415

    try:
        yield
    except TerminationSignal as error:
        # What Prefect makes of SIGTERM while a flow runs; to a person it is the same as Ctrl-C.
        raise KeyboardInterrupt from error
    except Abort as error:
        # The server does not let the run go on: somebody has cancelled or deleted it.
        raise LostApi(Failure(Cause.SERVER_REFUSED, str(error)), begun=True) from error
    except Failure:
        raise
    except Exception as error:
        # All that flows ask others has failures of its own, so this was Prefect's own client.
        if failure := server_failure(error):
            if is_login_refused(error) and not has_unreported_end():
                raise login_refused() from error
            lost = LostApi(failure, begun=has_unreported_end())
            raise unreported_failure() or lost from lost
        if was_interrupted(error):
            raise KeyboardInterrupt from error
        raise


def _prepare_prefect() -> None:
    for name, value in CLIENT_DEFAULTS.items():
        os.environ.setdefault(name, value)
    if "prefect" in sys.modules:
        # In a fork: Prefect has looked for files of settings elsewhere, and some time ago.
        import_module("prefect.context").refresh_global_settings_context()
    # Prefect makes only the last folder of its home, and tries for ever when it cannot.
    Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser().mkdir(
        parents=True, exist_ok=True
    )
    if not os.environ.get("PREFECT_API_URL"):
        provide_database()
    # It complains about events that it still sends when a command ends; they do arrive.
    logging.getLogger("EventsWorker").setLevel(logging.ERROR)


@contextmanager
def _nothing_begun(*, as_json: bool) -> Iterator[None]:
    """End at once on Ctrl-C: what it is raised in while modules load may take it for its own."""
    heard = signal.getsignal(signal.SIGINT)
    if heard is not signal.default_int_handler:
        yield
        return
    failure = Failure(Cause.INTERRUPTED, "stopped by a signal before anything was started")

    def end(*_: object) -> None:
        err.show_cursor()  # what shows the start has hidden it
        leave(failure, as_json=as_json, at_once=True)

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, heard)


class _WhileTransferring(progress.ProgressColumn):
    """A column that is empty for a step that transfers nothing."""

    def __init__(self, column: progress.ProgressColumn) -> None:
        super().__init__()
        self._column = column

    def render(self, task: progress.Task) -> RenderableType:
        """The column, once it is known how many bytes there are."""
        return "" if task.total is None else self._column(task)


class StepPrinter(progress.Progress):
    """Prints the steps of a flow and asks its questions.

    On a console that is no terminal only the lines of finished steps appear.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}"),
            progress.TimeElapsedColumn(),
            _WhileTransferring(progress.BarColumn(bar_width=30)),
            _WhileTransferring(progress.DownloadColumn()),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._steps: dict[str, progress.TaskID] = {}

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
        took = human_seconds(record.seconds)
        summary = record.summary if error is None else str(error).partition("\n")[0]
        prefix, colon, step = record.name.rpartition(": ")  # of a flow among several
        name = f"{prefix}{colon}{step:<8}"
        shown = escape(self._folded(summary, len(f"✓ {name} {took:>9}  ")))
        self._print(f"{mark} {name} [dim]{took:>9}[/]  {shown}")

    def noted(self, text: str) -> None:
        """Print a line between the steps."""
        self._print(f"[yellow]•[/] {escape(self._folded(text, len('• ')))}")

    def _folded(self, summary: str, column: int) -> str:
        """A text that begins at a column of a terminal; in a file the line stays whole."""
        if not self.console.is_terminal:
            return summary
        width = max(self.console.width - column, NARROWEST)
        lines = wrap(summary, width, break_long_words=False, break_on_hyphens=False)
        return f"\n{' ' * column}".join(lines)

    def _print(self, line: str) -> None:
        self.console.print(line, highlight=False, soft_wrap=True)

    def ask(self, question: Question) -> Answer | None:
        """The answer to a question, without a time limit; None where no person is at a terminal."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        self.stop()
        try:
            err.print(question.plan, markup=False, highlight=False)
            return Answer(approve=typer.confirm("Approve?", err=True))
        finally:
            self.start()
