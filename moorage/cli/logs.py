"""`moorage logs`: the logs of engines."""

import sys
import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated

import typer

from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.secrets import learn_secrets
from moorage.adapters.system.settings import Settings
from moorage.cli.completion import models
from moorage.cli.options import open_ledger, release_of
from moorage.cli.output import err
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.common.printable import printable
from moorage.engines.api_key import secrets_of
from moorage.releases.release_row import ReleaseRow

FOLLOWED_LINES = 10_000
"""Lines read a second while following; of more new ones, only the last are printed."""


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
    """Print the engine's log, or the recorded last lines of a failed release."""
    row = release_of(open_ledger(), name)
    # Only known secrets can be redacted in the log.
    learn_secrets(secrets_of(row.release.plan if row.release else None))
    before = _lines_of(row, max(tail, FOLLOWED_LINES) if follow else tail, container)
    _print({source: lines[-tail:] for source, lines in before.items()})
    if not (any(before.values()) or row.workloads):
        err.print(f"the log of {row.id} was removed: it is {row.state}", highlight=False)
    try:
        while follow and row.workloads:
            time.sleep(1)
            row = open_ledger().releases.get(row.id)
            now = _lines_of(row, FOLLOWED_LINES, container) if row.workloads else {}
            _print({name: added_lines(before.get(name, ()), lines) for name, lines in now.items()})
            before = now
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.CANCELLED) from None
    if follow:
        err.print(f"{row.id} is {row.state}: its log has ended", highlight=False)


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


def _lines_of(row: ReleaseRow, tail: int, container: str) -> dict[str, list[str]]:
    """The last lines of the named container, else of all serving ones, else the recorded lines."""
    names = [workload.name for workload in row.workloads]
    if container and container not in names:
        there = ", ".join(names) or "none"
        raise Failure(
            Cause.UNKNOWN_RELEASE, f"{row.id} has no workload {container}; it has {there}"
        )
    parts = {
        workload.name: runtime_for(workload, Settings()).logs(workload, tail)
        for workload in row.workloads
        if (workload.name == container if container else workload.serves)
    }
    if not row.workloads and row.release and row.release.failure:
        parts = {row.id: row.release.failure.log_tail}
    return {
        name: printable(part.rstrip("\n"), coloured=True).split("\n")[-tail:] if part else []
        for name, part in parts.items()
    }


def _print(parts: Mapping[str, Sequence[str]]) -> None:
    """Print lines of several containers, each with a heading as `tail` gives to files."""
    for name, lines in parts.items():
        if lines:
            heading = [f"==> {name} <=="] if len(parts) > 1 else []
            sys.stdout.write("\n".join([*heading, *lines, ""]))
    sys.stdout.flush()
