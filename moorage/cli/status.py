"""`moorage status`: show the models that run, and their load."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from moorage.adapters.hosts.liveness import Liveness, liveness_of
from moorage.adapters.system.settings import Settings
from moorage.cli.completion import models
from moorage.cli.options import AsJson, open_ledger, row_json, unknown_model
from moorage.cli.output import dump, print_table
from moorage.cli.unfinished import ABANDONED, abandoned
from moorage.common.failures import ExitCode
from moorage.common.units import human_seconds
from moorage.gateway.gateway import Gateway, last_use
from moorage.releases.overview import ReleaseOverview
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import DEPLOYED, SERVING, ReleaseState
from moorage.spec.keep_alive import keep_alive_seconds
from moorage.spec.one_shot import is_one_shot

if TYPE_CHECKING:
    from moorage.adapters.engines.engine_load import EngineLoad, Metered


class Use(NamedTuple):
    """Time of a release's last request through a gateway, and time when it will fall asleep."""

    last: datetime | None
    sleeps_at: datetime | None


DOWN, UNSEEN = "down", "unseen"
"""Health of a release that should serve but whose engines have ended, or are unreachable."""

TROUBLE = frozenset({DOWN, UNSEEN, ReleaseState.UNREACHABLE, ReleaseState.ERROR})

PLACES = ("release", "state", "for", "on", "endpoint", "observed")
LOAD = ("release", "state", "for", "running", "waiting", "tokens/s", "last request")


class Line(NamedTuple):
    """A release as a line of the table."""

    release: ReleaseOverview
    seen: Liveness
    use: Use
    load: "EngineLoad | None" = None

    @property
    def row(self) -> ReleaseRow:
        """The release without its record."""
        return self.release.row

    @property
    def health(self) -> str:
        """The state in the ledger, unless the hosts show that a running release is not alive."""
        if self.row.state != ReleaseState.RUNNING or self.seen.alive:
            return self.row.state
        return DOWN if self.seen.ended or not self.row.workloads else UNSEEN

    @property
    def is_trouble(self) -> bool:
        """Whether somebody should act.

        A failure is settled once its model is retired, unless it left workloads behind.
        """
        return self.health in TROUBLE and not (self.row.retired_at and not self.row.workloads)


def status(
    name: Annotated[
        str | None, typer.Argument(help="Only this model.", autocompletion=models)
    ] = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="Also retired models.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 6 if a model is down or failed.")
    ] = False,
    load: Annotated[
        bool, typer.Option("--load", "-l", help="How busy the engines are; it takes a second.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show every model: its state, where it runs, and leftover workloads."""
    lines = _lines(name, every=every)
    if load:
        lines = _with_loads(lines)
    header, cells = (LOAD, _load_cells) if load else (PLACES, _place_cells)
    if as_json:
        dump([_line_json(line) for line in lines])
    else:
        print_table(
            header,
            [cells(line) for line in lines],
            empty="No model is deployed. `moorage init NAME SOURCE` writes a first spec; `--all`"
            " shows retired models.",
            styles=["red" if line.is_trouble else "" for line in lines],
            whole=("for", "endpoint"),
        )
    if check and any(line.is_trouble for line in lines):
        raise typer.Exit(ExitCode.ENGINE)


def _lines(name: str | None, *, every: bool) -> list[Line]:
    """The serving, else the last, release of each model; also releases with leftovers."""
    ledger = open_ledger()
    newest = ledger.overviews.current()
    if name and name not in {one.row.model for one in newest}:
        raise unknown_model(ledger, name)
    # Later entries win: the serving release of a model, else the sleeping one, else the newest.
    newest.sort(key=lambda one: (one.row.state in DEPLOYED, one.row.state in SERVING))
    current = {one.row.model: one for one in newest}
    rows = [one for _, one in sorted(current.items())]
    if not (name or every):
        rows = [one for one in rows if not _is_over(one.row)]
    left = ledger.overviews.not_finished()
    ended = abandoned(ledger, [one.row for one in (*rows, *left)])
    left = [one for one in left if one.row.state == ReleaseState.ERROR or one.row.id in ended]
    shown = {one.row.id: one for one in (*rows, *left) if name in (None, one.row.model)}
    gateways, settings = ledger.gateways.all(), Settings()
    seen = liveness_of([one.row for one in shown.values()], settings)
    return [
        Line(one, _in_words(one.row, alive, ended), _use(gateways, one))
        for one, alive in zip(shown.values(), seen, strict=True)
    ]


def _in_words(row: ReleaseRow, seen: Liveness, ended: Collection[str]) -> Liveness:
    return seen._replace(detail=f"{seen.detail}; {ABANDONED}") if row.id in ended else seen


def _is_over(row: ReleaseRow) -> bool:
    """Whether a model is no longer expected to serve: retired, or a failed `moorage run`."""
    if row.state == ReleaseState.ERROR:
        return is_one_shot(row.model) or row.retired_at is not None
    return row.state == ReleaseState.STOPPED


def _with_loads(lines: Sequence[Line]) -> list[Line]:
    """The lines with the load of their running engines."""
    from moorage.adapters.engines.engine_load import loads_of  # noqa: PLC0415  (few ask engines)

    metered = [_metered(line) for line in lines]
    return [
        line._replace(load=load if engines else load._replace(why=_why_no_load(line)))
        for line, engines, load in zip(lines, metered, loads_of(metered), strict=True)
    ]


def _metered(line: Line) -> "list[Metered]":
    """The engines of a release that run and have metrics of requests."""
    from moorage.adapters.engines.engine_load import Metered  # noqa: PLC0415  (as above)
    from moorage.engines.registry import ENGINES  # noqa: PLC0415  (as above)
    from moorage.spec import EngineName  # noqa: PLC0415  (as above)

    if not line.seen.alive or line.release.engine not in set(EngineName):
        return []
    busy = ENGINES[EngineName(line.release.engine)].busy
    return [Metered(one.endpoint, busy) for one in line.row.serving] if busy else []


def _why_no_load(line: Line) -> str:
    if line.seen.alive:
        return f"{line.release.engine or 'its engine'} has no metrics of requests"
    return f"it is {line.health}"


def _line_json(line: Line) -> dict[str, Any]:
    seen = {
        "health": line.health,
        "since": line.release.since,
        "alive": line.seen.alive,
        "observed": line.seen.detail,
    }
    use = {"last_request": line.use.last, "sleeps_at": line.use.sleeps_at}
    load = {"load": line.load._asdict()} if line.load else {}
    return {**row_json(line.row), **seen, **use, **load}


def _place_cells(line: Line) -> tuple[str, ...]:
    row = line.row
    return (
        row.id,
        line.health,
        human_seconds(_seconds_since(line.release.since)),
        "\n".join(line.release.places) if row.workloads else "",
        "\n".join(workload.url for workload in row.serving),
        "\n".join(_details(line)),
    )


def _load_cells(line: Line) -> tuple[str, ...]:
    running, waiting, speed, _ = line.load or (None, None, None, "")
    last = line.use.last
    return (
        line.row.id,
        line.health,
        human_seconds(_seconds_since(line.release.since)),
        "-" if running is None else str(running),
        "-" if waiting is None else str(waiting),
        "-" if speed is None else f"{speed:.1f}",
        f"{human_seconds(_seconds_since(last))} ago" if last else "-",
    )


def _seconds_since(moment: datetime) -> float:
    return (datetime.now(UTC) - moment).total_seconds()


def _use(gateways: Sequence[Gateway], release: ReleaseOverview) -> Use:
    last = last_use(gateways, release.row.id)
    patience = keep_alive_seconds(release.keep_alive) if release.keep_alive else None
    if patience is None or not gateways or release.row.state != ReleaseState.RUNNING:
        return Use(last, None)
    # Without a request yet, the time counts from the start of serving.
    since = max(last, release.since) if last else release.since
    return Use(last, since + timedelta(seconds=patience))


def _details(line: Line) -> Iterator[str]:
    yield line.seen.detail
    yield from line.release.surprises
    use, now = line.use, datetime.now(UTC)
    if use.last:
        idle = _seconds_since(use.last)
        yield f"last request {human_seconds(idle)} ago" if idle >= 1 else "asked now"
    if use.sleeps_at and use.sleeps_at > now:
        yield f"sleeps in {human_seconds((use.sleeps_at - now).total_seconds())}"
