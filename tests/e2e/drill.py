"""What a drill needs: one place, a client that never stops asking, and what is left over."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psutil

from moorage.inventory.claims import Resource
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState
from tests.drill_table import COLUMNS, PROPERTY
from tests.e2e.background import Background
from tests.e2e.conftest import process_engine
from tests.e2e.workplace import PORTS, Workplace
from tests.one_authority import NO_TLS
from tests.waiting import PATIENCE_SECONDS, until

KILLED = -signal.SIGKILL
ASK_SECONDS = 10
PAUSE_SECONDS = 0.1
"""Between two requests of a caller: asking takes less of the machine than what is killed."""

HALF = ("*.partial", "*.incomplete", ".incomplete", "*.tmp", "*.part-*")

Tell = Callable[[str, object], None]
"""`record_property` of pytest."""


class Caller(Background):
    """Asks a release again and again, and counts what it does not answer.

    Args:
        row: The release.
        gateway: Address of the gateway through which its model is asked, whatever release serves
            it; empty = the release itself is asked.

    Attributes:
        answered: How many requests were.
        refused: When others were not, and why.
    """

    def __init__(self, row: ReleaseRow, gateway: str = "") -> None:
        super().__init__()
        self._url = f"{gateway or row.serving[0].endpoint}/v1/completions"
        self._patience = PATIENCE_SECONDS if gateway else ASK_SECONDS
        self._question = {"model": row.model, "prompt": "hello", "max_tokens": 1}
        self.answered, self.refused = 0, list[tuple[datetime, str]]()

    def run(self) -> None:
        with httpx.Client(timeout=self._patience, trust_env=False, verify=NO_TLS) as client:
            while not self.ended.wait(PAUSE_SECONDS):
                if wrong := self._ask(client):
                    self.refused.append((datetime.now(UTC), wrong))
                else:
                    self.answered += 1

    def wait(self) -> None:
        """Wait for the end of its first request."""
        until(lambda: self.answered or self.refused)

    def _ask(self, client: httpx.Client) -> str:
        try:
            status = client.post(self._url, json=self._question).status_code
        except httpx.HTTPError as error:
            return repr(error)
        return "" if status == 200 else str(status)


class Drill:
    """One place in which something is killed again and again.

    Args:
        place: The place.
        engine: `engine` of a spec; it takes variables of the environment.
        fields: More fields of every spec.
    """

    def __init__(
        self, place: Workplace, engine: Callable[..., dict[str, Any]], **fields: Any
    ) -> None:
        self.place, self._engine, self._fields, self._round = place, engine, fields, 0
        self._recoveries: set[tuple[str, bool]] = set()

    def spec(self, name: str = "tiny", **fields: Any) -> Path:
        """A spec that differs from all before it."""
        self._round += 1
        engine = self._engine(ROUND=str(self._round))
        return self.place.spec(name, **{"engine": engine, **self._fields, **fields})

    def serving(self, name: str = "tiny") -> ReleaseRow:
        """The one that serves."""
        [row] = [row for row in self.place.releases(name) if row.state == "running"]
        return row

    def deployed(self, name: str = "tiny", **fields: Any) -> ReleaseRow:
        """One that serves, deployed unless one does already; its repairs are forgotten."""
        self._forget_repairs()
        if self.place.ledger.releases.running(self.place.named(name)) is None:
            self.place.run("deploy", self.spec(name, **fields))
        return self.serving(name)

    def killed(self, point: str, *command: object) -> None:
        """Run a command that kills itself at a point."""
        ended = self.place.run(*command, code=None, point=point)
        assert ended.returncode == KILLED, f"{ended.stdout}\n{ended.stderr}"

    def reconcile_killed(self, point: str) -> None:
        """Reconcile, which kills itself at a point; the next one need not wait for its back-off."""
        self.killed(point, "reconcile", "--fleet", self.place.folder / "fleet.yaml")
        self._forget_repairs()

    def reconcile(self) -> str:
        """Reconcile once, and say what was done."""
        answer = self.place.json("reconcile", "--fleet", self.place.folder / "fleet.yaml")
        undone = [one for one in answer["actions"] if not one["done"]]
        assert undone == [], undone
        return ", ".join(one["deed"] for one in answer["actions"]) or "nothing to do"

    def leaks_nothing(self, *serving: ReleaseRow) -> str:
        """Only what serves runs, and holds memory, ports, locks and files.

        Returns:
            How much else there is, as the table shows it.
        """
        ledger, claims = self.place.ledger, self.place.claims()
        held = {claim.index for claim in claims if claim.resource == Resource.PORT}
        models = ledger.releases.models()
        left: dict[str, Collection[Any]] = {
            "claims": {claim.release for claim in claims} ^ {row.id for row in serving},
            "engines": self.running() ^ _engines(serving),
            "ports": self.listening() - held,
            "files": self.files() ^ self.folders(serving),
            "locks": ledger.locks.holders([*models, "reconcile:fleet"]),
        }
        assert not any(left.values()), left
        return ", ".join(f"{len(found)} {what}" for what, found in left.items())

    def running(self) -> set[str]:
        """Names of the engines that run."""
        return {name for name in self.place.running() if name.startswith("moorage-")}

    def listening(self) -> set[int]:
        """Ports of the place's range on which something listens."""
        first = self.place.first_port
        seen = psutil.net_connections(kind="tcp")
        ports = {one.laddr[1] for one in seen if one.laddr and one.status == psutil.CONN_LISTEN}
        return {port for port in ports if first <= port < first + PORTS}

    def files(self) -> set[str]:
        """Folders of engines, and half files wherever they are."""
        half = {str(file) for file in self.half_files()}
        return half | {one.name for one in (self.place.home / "run").glob("*")}

    def half_files(self, root: Path | None = None) -> list[Path]:
        """What is being written, or was when its process was killed; below the home, or a root."""
        return [file for one in HALF for file in (root or self.place.home).rglob(one)]

    def folders(self, serving: tuple[ReleaseRow, ...]) -> set[str]:
        """Folders that engines have."""
        return _engines(serving)

    def answered(self, caller: Caller, old: ReleaseRow) -> str:
        """How many of the requests the old one answered until it was replaced: all of them."""
        new = self.place.ledger.releases.running(old.model)
        switched = datetime.now(UTC)
        if new and new.id != old.id:
            way = self.place.ledger.releases.transitions(new.id)
            switched = next(one.at for one in way if one.after == ReleaseState.RUNNING)
        missed = [why for when, why in caller.refused if when < switched]
        assert not missed, missed[:3]
        assert caller.answered, caller.refused[:3]
        return f"{caller.answered} of {caller.answered}"

    def repeated(self, spec: Path, *, new: bool, recovery: str = "") -> str:
        """Deploy again what was to be deployed; what took over already is left as it is.

        Args:
            spec: What was to be deployed.
            new: Whether it took over.
            recovery: What reconciling did. A deploy is repeated once for each such class only;
                empty = always.

        Returns:
            How that ended, as the table shows it.
        """
        if recovery and (recovery, new) in self._recoveries:
            return "-"
        self._recoveries.add((recovery, new))
        outcome = str(self.place.json("deploy", spec)["outcome"])
        assert outcome == ("unchanged" if new else "completed")
        return outcome

    def _forget_repairs(self) -> None:
        """Let nothing wait because something was repaired a moment ago."""
        own = self.place.ledger.repairs
        for record in own.all():
            own.keep(record.model_copy(update={"not_before": None, "attempts": 0}))


def row(tell: Tell, *cells: str) -> None:
    """Put a row into the table, in the order of its columns."""
    tell(PROPERTY, dict(zip(COLUMNS, cells, strict=True)))


def on_processes(place: Workplace, program: Path) -> Drill:
    """A drill with the tiny server as processes."""
    return Drill(place, lambda **more: process_engine(program, **more))


def _engines(rows: tuple[ReleaseRow, ...]) -> set[str]:
    return {one.name for row in rows for one in row.workloads}
