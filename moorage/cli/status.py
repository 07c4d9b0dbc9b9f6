"""`moorage status` and `logs`: what runs now, and what engines write."""

import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

import typer

from moorage.adapters.hosts.runtime import runtime_for
from moorage.adapters.system.settings import Settings
from moorage.cli.completion import models
from moorage.cli.options import AsJson, open_ledger, release_of, row_json, unknown_release
from moorage.cli.output import dump, err, print_table
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.common.printable import printable
from moorage.common.units import human_seconds
from moorage.engines.api_key import secrets_of
from moorage.gateway.gateway import Gateway, last_use
from moorage.releases.release import ReleaseRow, ReleaseState
from moorage.releases.states import DEPLOYED, SERVING
from moorage.spec.keep_alive import keep_alive_seconds
from moorage.spec.one_shot import is_one_shot


class Liveness(NamedTuple):
    """Whether all workloads of a release are alive, and the state of each in words."""

    alive: bool
    detail: str


class Use(NamedTuple):
    """When a release was asked last through a gateway, and when it falls asleep."""

    last: datetime | None
    sleeps_at: datetime | None


def status(
    name: Annotated[
        str | None, typer.Argument(help="Only this model.", autocompletion=models)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every model: its state, its endpoint, and leftover workloads."""
    ledger = open_ledger()
    rows = [row for row in ledger.releases.latest() if _is_wanted(row, name)]
    if name and not rows:
        raise unknown_release(ledger, name, f"no model has the name '{name}'")
    own = ledger.releases
    deployed = sorted(own.in_states(DEPLOYED), key=lambda row: row.state in SERVING)
    current = {row.model: row for row in deployed}
    serving = [current.get(row.model, row) for row in rows]
    left = [row for row in ledger.releases.not_undone() if name in (None, row.model)]
    shown = {row.id: row for row in (*serving, *left)}
    gateways = ledger.gateways.all()
    settings = Settings()
    found = [(row, liveness(row, settings), _use(gateways, row)) for row in shown.values()]
    if as_json:
        return dump(
            [
                {**row_json(row), "alive": seen.alive, "observed": seen.detail}
                | {"last_request": use.last, "sleeps_at": use.sleeps_at}
                for row, seen, use in found
            ]
        )
    return print_table(
        ("model", "release", "state", "endpoint", "observed"),
        [
            (
                row.model,
                row.id,
                row.state,
                "\n".join(workload.url for workload in row.serving),
                "\n".join(_lines(row, seen, use)),
            )
            for row, seen, use in found
        ],
        empty="No model is deployed yet. `moorage init NAME SOURCE` writes a first spec.",
    )


def _is_wanted(row: ReleaseRow, name: str | None) -> bool:
    """Whether a model is shown: what `moorage run` has ended is, when it is named."""
    over = is_one_shot(row.model) and row.state in (ReleaseState.STOPPED, ReleaseState.ERROR)
    return row.model == name if name else not over


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


def _use(gateways: Sequence[Gateway], row: ReleaseRow) -> Use:
    last = last_use(gateways, row.id)
    patience = keep_alive_seconds(row.release.spec.keep_alive) if row.release else None
    if last is None or patience is None:
        return Use(last, None)
    return Use(last, last + timedelta(seconds=patience))


def _lines(row: ReleaseRow, seen: Liveness, use: Use) -> Iterator[str]:
    yield seen.detail
    yield from row.release.surprises if row.release else ()
    now = datetime.now(UTC)
    if use.last:
        idle = (now - use.last).total_seconds()
        yield f"last request {human_seconds(idle)} ago" if idle >= 1 else "asked now"
    if use.sleeps_at and use.sleeps_at > now:
        yield f"sleeps in {human_seconds((use.sleeps_at - now).total_seconds())}"


def liveness(row: ReleaseRow, settings: Settings) -> Liveness:
    """The actual state of a release's workloads."""
    if not row.workloads:
        return Liveness(False, row.cause or row.state)
    alive, states = row.state != ReleaseState.ERROR, []
    for workload in row.workloads:
        try:
            seen = runtime_for(workload, settings).observe(workload)
        except Failure as failure:
            alive, detail = False, str(failure)
        else:
            alive = alive and seen.running
            part = "" if workload.serves else f"{workload.role} on {workload.host}: "
            # An engine that has ended is dead, whatever it ended with: vLLM dies with 0.
            detail = part + (seen.detail if seen.running else f"dead: {seen.with_exit_code}")
        left = row.state == ReleaseState.ERROR
        states.append(f"left behind on {workload.host}: {detail}" if left else detail)
    return Liveness(alive, "; ".join(states))


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
