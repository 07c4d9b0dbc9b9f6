"""Tables and text for people, JSON for programs; failures in both forms, with exit codes."""

import asyncio
import errno
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import IO, Any, NoReturn, TypeVar

import typer
from pydantic import BaseModel, ValidationError
from rich.cells import cell_len
from rich.console import Console
from rich.control import strip_control_codes
from rich.markup import escape
from rich.segment import Segment, SegmentLines, Segments
from rich.text import Text

from moorage.common.failures import Cause, Failure
from moorage.reports.document import Document

R = TypeVar("R")

WIDE = 160
"""Width in columns where the output is not a terminal but, for example, a file."""
MARGINS, NARROW_COLUMN = 2, 9
"""Characters of a column's two margins, and of the narrowest readable column with them."""
READER_GONE = 128 + signal.SIGPIPE
"""Exit code of a command whose output's reader has gone, as shells report SIGPIPE."""
LOG_LINES_SHOWN = 25
LONGEST_SHOWN = 80
"""Most characters of a refused value in a failure."""


class _Output(Console):
    """Rich's console, which exits with `READER_GONE` on a broken pipe."""

    def on_broken_pipe(self) -> None:
        """Stop printing and exit."""
        self.quiet = True
        _leave_unread(self.file)


out = _Output(width=None if sys.stdout.isatty() else WIDE)
err = _Output(stderr=True, width=None if sys.stderr.isatty() else WIDE)


def dump(content: Any) -> None:
    """Print JSON; the content may contain Pydantic models at any depth."""
    json.dump(content, sys.stdout, indent=2, default=_plain)
    sys.stdout.write("\n")


def _plain(content: Any) -> Any:
    return content.model_dump(mode="json") if isinstance(content, BaseModel) else str(content)


def print_answer(content: Any, text: str, *, as_json: bool) -> None:
    """Print JSON for a program, or a text for a person."""
    if as_json:
        dump(content)
    else:
        say(text)


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    empty: str = "",
    styles: Sequence[str] = (),
    whole: Collection[str] = (),
) -> None:
    """Print a table; cells that are too long are folded, never cut.

    Args:
        empty: Text to print instead of a table without rows.
        whole: Columns, such as addresses and durations, that are not folded if the other columns
            still fit next to them.
    """
    if not rows and empty:
        out.print(empty)
        return
    table = [(header, "bold")] * any(header) + [*zip_longest(rows, styles, fillvalue="")]
    widths = _widths(header, [row for row, _ in table], whole)
    shown = Segments(
        Segment(strip_control_codes("".join(_lines(row, widths))), out.get_style(style))
        for row, style in table
    )
    out.print(shown, end="", soft_wrap=True)


def _widths(
    header: Sequence[str], rows: Sequence[Sequence[str]], whole: Collection[str]
) -> list[int]:
    """The width of each column; the widest foldable columns shrink until the table fits."""
    widths = [min(out.width, max(map(_width, column))) for column in zip(*rows, strict=True)]
    columns = range(len(widths))
    least = NARROW_COLUMN * len(widths)
    kept = {at for at in columns if header[at] in whole and widths[at] + least <= out.width}
    for _ in range(sum(widths) + MARGINS * len(widths) - out.width):
        widest = max(columns, key=lambda at: (at not in kept and widths[at] > 1, widths[at]))
        widths[widest] = max(1, widths[widest] - 1)
    return widths


def _width(cell: str) -> int:
    return max(map(cell_len, str(cell).split("\n")))


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """The lines of a row, as Rich draws them; Rich itself takes a millisecond a row."""
    cells = (_folded(str(cell), width) for cell, width in zip(row, widths, strict=True))
    for parts in zip_longest(*cells, fillvalue=""):
        placed = zip(parts, widths, strict=True)
        padded = (f" {part}{' ' * (width - cell_len(part))} " for part, width in placed)
        yield f"{''.join(padded)}\n"


def _folded(cell: str, width: int) -> list[str]:
    if _width(cell) <= width:
        return cell.split("\n")
    return [line.plain for line in Text(cell).wrap(out, width, overflow="fold")]


def say(text: str, *, style: str | None = None, markup: bool = False) -> None:
    """Print a line without folding and without Rich's highlighting of numbers and names."""
    out.print(text, style=style, markup=markup, highlight=False, soft_wrap=True)


def show_document(document: Document) -> None:
    """Print a document on the terminal."""
    out.rule(f"[bold]{escape(document.title)}", align="left")
    for section in document.sections:
        if section.title:
            out.print(f"\n[bold]{escape(section.title)}")
        if section.text:
            say(section.text)
        if section.rows:
            print_table(section.header, section.rows)
        if section.code:
            say(section.code, style="dim")


def show_markdown(text: str) -> None:
    """Print Markdown as a page on the terminal, after an empty line."""
    from rich.markdown import Markdown  # noqa: PLC0415  (its parser is of use to few commands)

    out.print()
    lines = out.render_lines(Markdown(text), pad=False)
    # Rich surrounds each table with several empty lines; one is enough.
    kept = [line for before, line in pairwise([[], *lines]) if _has_text(before) or _has_text(line)]
    out.print(SegmentLines(kept, new_lines=True))


def _has_text(line: Sequence[Segment]) -> bool:
    return any(part.text.strip() for part in line)


def confirm(question: str) -> bool:
    """Ask a person yes or no on standard error, as the output may be a file.

    Raises `INTERRUPTED` for Ctrl-C or Ctrl-D instead of an answer.
    """
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        err.print()  # the answer's line is not ended
        advice = "Run it again, and answer `y` or `n`."
        detail = f"not answered: {question}"
        raise Failure(Cause.INTERRUPTED, detail, suggestion=advice) from None


class LostApi(Failure):
    """Prefect's API failed while a flow ran or when it ended."""

    def __init__(self, failure: Failure, *, begun: bool) -> None:
        advice = (
            f"`moorage status` shows what the flow has done. {failure.suggestion} Then"
            " `moorage reconcile` cleans up, and the command can be repeated."
        )
        super().__init__(
            failure.cause,
            f"Prefect's API failed the flow run: {failure.detail}",
            suggestion=advice if begun else failure.suggestion,
        )


def exit_on_failure(action: Callable[[], R], *, as_json: bool = False) -> R:
    """Run an action; show its failure and exit with the code of its class."""
    try:
        try:
            return action()
        finally:
            sys.stdout.flush()  # raises here if the reader, such as `head`, has gone
    except Failure as failure:
        lost = isinstance(failure, LostApi) or isinstance(failure.__cause__, LostApi)
        leave(failure, as_json=as_json, at_once=lost)
    except ValidationError as error:
        leave(_bad_setting(error), as_json=as_json)
    except RuntimeError as error:
        if "Failed to reach API" not in str(error):
            raise
        leave(Failure(Cause.SERVER_UNAVAILABLE, str(error)), as_json=as_json)
    except OSError as error:
        if error.errno == errno.EPIPE:
            _leave_unread(sys.stdout)
        from moorage.adapters.system.os_errors import CAUSES  # noqa: PLC0415  (only failures)

        cause = CAUSES.get(error.errno or 0, Cause.STORE_UNWRITABLE)
        leave(Failure(cause, str(error)), as_json=as_json)
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        detail = str(error) or "stopped by a signal"
        leave(Failure(Cause.INTERRUPTED, detail), as_json=as_json)


def _leave_unread(stream: IO[str]) -> NoReturn:
    # Discard the rest of the output: the interpreter flushes once more when it exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    raise SystemExit(READER_GONE)


def leave(failure: Failure, *, as_json: bool, at_once: bool = False) -> NoReturn:
    """Show a failure, with its suggestion and log tail, and exit with its code.

    `at_once` is for an API that does not answer: Prefect would retry sending events for minutes.
    """
    if as_json:
        dump(_failure_json(failure))
    else:
        _print_failure(failure)
    sys.stdout.flush()
    code = int(failure.cause.exit_code)
    if at_once:
        sys.stderr.flush()
        os._exit(code)
    raise SystemExit(code)


def refused_argument(error: BaseException | None) -> str:
    """The value that Pydantic refused, and the allowed ones; empty = another kind of error."""
    if not isinstance(error, ValidationError):
        return ""
    from moorage.reports.problems import in_words, nearest_of  # noqa: PLC0415  (only failures)

    first = error.errors(include_url=False)[0]
    choices = re.findall("'([^']+)'", first["msg"].partition(" is not one of ")[2])
    if not choices:
        return in_words(first["msg"], repr(first["input"]))
    close = nearest_of(str(first["input"]), choices)
    hint = f" Did you mean '{close}'?" if close else ""
    return f"found {first['input']!r}; allowed: {', '.join(choices)}.{hint}"


def _bad_setting(error: ValidationError) -> Failure:
    """The failure for a value that `Settings`, or the type of an argument, refuses."""
    from moorage.adapters.system.settings import PREFIX, Settings  # noqa: PLC0415  (only failures)
    from moorage.common.printable import clipped  # noqa: PLC0415  (as above)
    from moorage.reports import problems  # noqa: PLC0415  (as above)

    first = error.errors(include_url=False)[0]
    found = clipped(repr(first["input"]), LONGEST_SHOWN)
    if not first["loc"]:
        pattern = first.get("ctx", {}).get("pattern", "")
        wanted = problems.PATTERNS_IN_WORDS.get(pattern, first["msg"])
        return Failure(Cause.BAD_SETTING, f"found {found}; allowed: {wanted}")
    name = "_".join(map(str, first["loc"]))
    # The location of a setting with an alias is its full name.
    prefix = PREFIX if name in Settings.model_fields else ""
    variable = f"{prefix}{name}".upper()
    return Failure(Cause.BAD_SETTING, f"{variable}: {problems.in_words(first['msg'], found)}")


def _failure_json(failure: Failure) -> dict[str, Any]:
    content = {
        "cause": failure.cause,
        "summary": failure.cause.summary,
        "detail": failure.detail,
        "suggestion": failure.suggestion,
        "exit_code": int(failure.cause.exit_code),
        "evidence": failure.evidence,
        "log_tail": failure.log_tail,
    }
    return {"error": {**content, **failure.content}}


def _print_failure(failure: Failure) -> None:
    if failure.log_tail:
        tail = failure.log_tail.splitlines()[-LOG_LINES_SHOWN:]
        err.print("[dim]last lines of the engine's log:[/dim]")
        shown = "\n".join(f"  {line}" for line in tail)
        err.print(shown, style="dim", markup=False, soft_wrap=True, highlight=False)
    whole = not err.is_terminal  # programs may read the lines of a file
    summary = escape(failure.cause.summary)
    err.print(f"[bold red]{summary}[/] ({failure.cause})", soft_wrap=whole, highlight=False)
    err.print(failure.detail, markup=False, soft_wrap=whole, highlight=False)
    advice = f"[bold]What to do:[/] {escape(failure.suggestion)}"
    err.print(advice, soft_wrap=whole, highlight=False)
