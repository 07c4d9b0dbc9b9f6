"""`moorage logs`: the logs of engines."""

import sys
import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated

import typer

from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.secrets import learn_secrets
from moorage.adapters.system.parallel import map_parallel
from moorage.adapters.system.settings import Settings
from moorage.cli.completion import models
from moorage.cli.options import open_ledger, release_of
from moorage.cli.output import err
from moorage.cli.unfinished import ABANDONED, abandoned, causes
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.common.printable import printable
from moorage.common.units import human_seconds
from moorage.engines.api_key import secrets_of
from moorage.engines.workload import Workload
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import UNFINISHED, ReleaseState

FOLLOWED_LINES = 10_000
"""Lines read a second while following; of more new ones, only the last are printed."""

BEGINNING = UNFINISHED - {ReleaseState.STOPPING}
"""States of a release that may have no log yet."""

READ_SECONDS = 60.0
"""How long to wait for the logs of all hosts."""


def logs(
    name: Annotated[
        str, typer.Argument(help="Name of a model, or a release.", autocompletion=models)
    ],
    tail: Annotated[
        int, typer.Option("--tail", "-n", min=1, max=1_000_000, help="Number of lines.")
    ] = 200,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log.")] = False,
    container: Annotated[
        str, typer.Option(help="Name of one container, such as a follower's or Ray's.")
    ] = "",
) -> None:
    """Print the engine's log, or the recorded last lines of a failed start."""
    row = release_of(open_ledger(), name)
    _learn_secrets(row)
    before, failed = _lines_of(row, max(tail, FOLLOWED_LINES) if follow else tail, container)
    if failed and not (before or follow):
        raise next(iter(failed.values()))
    _warn(failed, {})
    _print({source: lines[-tail:] for source, lines in before.items()})
    if not (any(before.values()) or row.workloads):
        err.print(_absence(row), highlight=False)
    if follow:
        row = _follow(row, before, failed, container)
        end = ABANDONED if row.state in BEGINNING else "its log has ended"
        err.print(f"{row.id} is {row.state}: {end}", highlight=False)


def _follow(
    row: ReleaseRow, before: dict[str, list[str]], failed: dict[str, Failure], container: str
) -> ReleaseRow:
    """Print new lines until the release has ended; returns its last state."""
    try:
        while row.workloads or _is_beginning(row):
            time.sleep(1)
            earlier, known = row, failed
            row = open_ledger().releases.get(row.id)
            if row.plan != earlier.plan:
                _learn_secrets(row)
            now, failed = _lines_of(row, FOLLOWED_LINES, container) if row.workloads else ({}, {})
            _warn(failed, known)
            _print({name: added_lines(before.get(name, ()), lines) for name, lines in now.items()})
            before = {name: before[name] for name in failed if name in before} | now
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.CANCELLED) from None
    return row


def _learn_secrets(row: ReleaseRow) -> None:
    """Only known secrets can be redacted in the log."""
    learn_secrets(secrets_of(row.plan))


def _is_beginning(row: ReleaseRow) -> bool:
    """Whether a flow works towards the release's first log."""
    return row.state in BEGINNING and not abandoned(open_ledger(), [row])


def _absence(row: ReleaseRow) -> str:
    """Why a release without workloads has no log."""
    if row.state not in BEGINNING:
        return f"the log of {row.id} was removed: it is {row.state}"
    why = causes(open_ledger(), [row])[row.id]
    return "; ".join(filter(None, (f"{row.id} has no log yet: it is {row.state}", why)))


def added_lines(before: Sequence[str], now: Sequence[str]) -> Sequence[str]:
    """The lines of a log that came after an earlier look.

    Both are the last lines of the log at their time. The first line of `now` may be cut, and the
    last one of `before` may have been incomplete; that one counts as new.
    """
    for gone, cut in product(range(len(before)), (0, 1)):
        end = cut + len(before) - gone - 1
        if end < len(now) and now[end].startswith(before[-1]) and now[cut:end] == before[gone:-1]:
            return now[end + (now[end] == before[-1]) :]
    return now


def _lines_of(
    row: ReleaseRow, tail: int, container: str
) -> tuple[dict[str, list[str]], dict[str, Failure]]:
    """The last lines of the named container, else of all serving ones, and what cannot be read.

    If none can be read, the lines are those that the record of a failed start has.
    """
    names = [workload.name for workload in row.workloads]
    if container and container not in names:
        detail = f"{row.id} has no workload {container}; it has {', '.join(names) or 'none'}"
        raise Failure(Cause.UNKNOWN_RELEASE, detail)
    wanted = [one for one in row.workloads if (one.name == container if container else one.serves)]
    parts, failed = _read(wanted, tail)
    failure = row.release and (row.release.failure or row.release.wake_failure)
    if not parts and failure and failure.log_tail:
        parts = {row.id: failure.log_tail}
    lines = {
        name: printable(part.rstrip("\n"), coloured=True).split("\n")[-tail:] if part else []
        for name, part in parts.items()
    }
    return lines, failed


def _read(wanted: Sequence[Workload], tail: int) -> tuple[dict[str, str], dict[str, Failure]]:
    """The logs of workloads, and the failure of each that cannot be read."""
    parts: dict[str, str] = {}
    failed: dict[str, Failure] = {}

    def read(one: Workload) -> str:
        return runtime_for(one, Settings()).logs(one, tail)

    for one, outcome in zip(wanted, map_parallel(read, wanted, READ_SECONDS), strict=True):
        if isinstance(outcome, Failure):
            failed[one.name] = outcome
        elif isinstance(outcome, TimeoutError):
            detail = f"{one.host} did not hand over the log in {human_seconds(READ_SECONDS)}"
            failed[one.name] = Failure(Cause.RUNTIME_UNAVAILABLE, detail)
        elif isinstance(outcome, Exception):
            raise outcome
        else:
            parts[one.name] = outcome
    return parts, failed


def _warn(failed: Mapping[str, Failure], known: Mapping[str, Failure]) -> None:
    """Tell which logs cannot be read, once."""
    for name in failed.keys() - known.keys():
        err.print(f"no log of {name}: {failed[name].detail}", style="yellow", highlight=False)


def _print(parts: Mapping[str, Sequence[str]]) -> None:
    """Print lines of several containers, each with a heading as `tail` gives to files."""
    for name, lines in parts.items():
        if lines:
            heading = [f"==> {name} <=="] if len(parts) > 1 else []
            sys.stdout.write("\n".join([*heading, *lines, ""]))
    sys.stdout.flush()
