"""`moorage status` and `logs`: what runs now, and what engines write."""

import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, NamedTuple

import typer

from moorage.adapters.hosts.liveness import Liveness, liveness_of
from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.system.settings import Settings
from moorage.cli.completion import models
from moorage.cli.options import AsJson, open_ledger, release_of, row_json, unknown_model
from moorage.cli.output import dump, err, print_table
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.common.printable import printable
from moorage.common.units import human_seconds
from moorage.gateway.gateway import Gateway, last_use
from moorage.releases.overview import ReleaseOverview
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import DEPLOYED, SERVING, ReleaseState
from moorage.spec.keep_alive import keep_alive_seconds
from moorage.spec.one_shot import is_one_shot


class Use(NamedTuple):
    """When a release was asked last through a gateway, and when it falls asleep."""

    last: datetime | None
    sleeps_at: datetime | None


DOWN, UNSEEN = "down", "unseen"
"""What a release that should serve is called whose engines have ended, or are out of sight."""

TROUBLE = frozenset({DOWN, UNSEEN, ReleaseState.UNREACHABLE, ReleaseState.ERROR})


class Line(NamedTuple):
    """A release as a line of the table."""

    release: ReleaseOverview
    seen: Liveness
    use: Use

    @property
    def row(self) -> ReleaseRow:
        """The release without its record."""
        return self.release.row

    @property
    def health(self) -> str:
        """The state of the ledger, unless the hosts say otherwise."""
        if self.row.state != ReleaseState.RUNNING or self.seen.alive:
            return self.row.state
        return DOWN if self.seen.ended or not self.row.workloads else UNSEEN


def status(
    name: Annotated[
        str | None, typer.Argument(help="Only this model.", autocompletion=models)
    ] = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="Also retired models.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 6 if a model is down or failed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show every model: its state, where it runs, and leftover workloads."""
    lines = _lines(name, every=every)
    if as_json:
        dump([_line_json(line) for line in lines])
    else:
        print_table(
            ("release", "state", "for", "on", "endpoint", "observed"),
            [_cells(line) for line in lines],
            empty="No model is deployed. `moorage init NAME SOURCE` writes a first spec; `--all`"
            " shows retired models.",
            styles=["red" if line.health in TROUBLE else "" for line in lines],
            whole=("for", "endpoint"),
        )
    if check and any(line.health in TROUBLE for line in lines):
        raise typer.Exit(ExitCode.ENGINE)


def _lines(name: str | None, *, every: bool) -> list[Line]:
    """The release that serves each model, else its last one; and those with leftovers."""
    ledger = open_ledger()
    newest = ledger.overviews.current()
    if name and name not in {one.row.model for one in newest}:
        raise unknown_model(ledger, name)
    # Of a model with several, the one that serves; else the one that sleeps, else the newest.
    newest.sort(key=lambda one: (one.row.state in DEPLOYED, one.row.state in SERVING))
    current = {one.row.model: one for one in newest}
    rows = [one for _, one in sorted(current.items()) if name or every or not _is_over(one.row)]
    shown = {
        one.row.id: one
        for one in (*rows, *ledger.overviews.not_undone())
        if name in (None, one.row.model)
    }
    gateways, settings = ledger.gateways.all(), Settings()
    seen = liveness_of([one.row for one in shown.values()], settings)
    return [
        Line(one, alive, _use(gateways, one))
        for one, alive in zip(shown.values(), seen, strict=True)
    ]


def _is_over(row: ReleaseRow) -> bool:
    """Whether nobody expects a model to serve: it was retired, or `moorage run` has ended."""
    failed_run = is_one_shot(row.model) and row.state == ReleaseState.ERROR
    return row.state == ReleaseState.STOPPED or failed_run


def _line_json(line: Line) -> dict[str, Any]:
    seen = {
        "health": line.health,
        "since": line.release.since,
        "alive": line.seen.alive,
        "observed": line.seen.detail,
    }
    use = {"last_request": line.use.last, "sleeps_at": line.use.sleeps_at}
    return {**row_json(line.row), **seen, **use}


def _cells(line: Line) -> tuple[str, ...]:
    row = line.row
    return (
        row.id,
        line.health,
        human_seconds((datetime.now(UTC) - line.release.since).total_seconds()),
        "\n".join(line.release.places) if row.workloads else "",
        "\n".join(workload.url for workload in row.serving),
        "\n".join(_details(line)),
    )


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
    from moorage.adapters.secrets import learn_secrets  # noqa: PLC0415  (`status` needs none)
    from moorage.engines.api_key import secrets_of  # noqa: PLC0415  (as above)

    # Only secrets that are known can be taken out of its log.
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


def _use(gateways: Sequence[Gateway], release: ReleaseOverview) -> Use:
    last = last_use(gateways, release.row.id)
    patience = keep_alive_seconds(release.keep_alive) if release.keep_alive else None
    if last is None or patience is None:
        return Use(last, None)
    return Use(last, last + timedelta(seconds=patience))


def _details(line: Line) -> Iterator[str]:
    yield line.seen.detail
    yield from line.release.surprises
    use, now = line.use, datetime.now(UTC)
    if use.last:
        idle = (now - use.last).total_seconds()
        yield f"last request {human_seconds(idle)} ago" if idle >= 1 else "asked now"
    if use.sleeps_at and use.sleeps_at > now:
        yield f"sleeps in {human_seconds((use.sleeps_at - now).total_seconds())}"


def _log_text(row: ReleaseRow, tail: int, container: str) -> str:
    """The last lines of a container's log, else of all that serve, or those that were kept."""
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
    """What a longer log has beyond a shorter one."""
    last = before.splitlines()[-1:] or [""]
    _, found, rest = now.rpartition(last[0])
    return rest.lstrip("\n") + "\n" if found and rest.strip() else ""
