"""`moorage logs`: the logs of engines."""

import sys
import time
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
    shown = _log_text(row, tail, container)
    sys.stdout.write(shown + "\n" * bool(shown))
    if not (shown or row.workloads):
        err.print(f"the log of {row.id} was removed: it is {row.state}", highlight=False)
    try:
        while follow and row.workloads:
            time.sleep(1)
            text = _log_text(row, 10_000, container)
            sys.stdout.write(_new_lines(shown, text))
            sys.stdout.flush()
            shown = text
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.CANCELLED) from None


def _log_text(row: ReleaseRow, tail: int, container: str) -> str:
    """The last lines of the named container, else of all serving ones, else the recorded lines."""
    names = [workload.name for workload in row.workloads]
    if container and container not in names:
        there = ", ".join(names) or "none"
        raise Failure(
            Cause.UNKNOWN_RELEASE, f"{row.id} has no workload {container}; it has {there}"
        )
    parts = [
        runtime_for(workload, Settings()).logs(workload, tail)
        for workload in row.workloads
        if (workload.name == container if container else workload.serves)
    ]
    if not row.workloads and row.release and row.release.failure:
        parts = ["\n".join(row.release.failure.log_tail.splitlines()[-tail:])]
    return "\n".join(printable(part.rstrip("\n"), coloured=True) for part in parts)


def _new_lines(before: str, now: str) -> str:
    """The lines of a newer log after the last line of the older one."""
    last = before.splitlines()[-1:] or [""]
    _, found, rest = now.rpartition(last[0])
    return rest.lstrip("\n") + "\n" if found and rest.strip() else ""
