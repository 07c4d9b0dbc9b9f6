"""What a drill needs: one place, a client that never stops asking, and a table of what came."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from moorage.release import ReleaseRow
from tests.e2e.conftest import process_engine
from tests.e2e.nursery import ForkedWorkplace

KILLED = -signal.SIGKILL

HALF = ("*.partial", "*.incomplete", ".incomplete", "*.tmp", "*.part-*")


class Caller(threading.Thread):
    """Asks an engine without a pause, and counts what it does not answer."""

    def __init__(self, row: ReleaseRow) -> None:
        super().__init__(daemon=True)
        self._url, self._ended = f"{row.serving[0].endpoint}/v1/completions", threading.Event()
        self._question = {"model": row.model, "prompt": "hello", "max_tokens": 1}
        self.answered, self.refused = 0, list[str]()

    def __enter__(self) -> Caller:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        with httpx.Client(timeout=10, trust_env=False) as client:
            while not self._ended.wait(0.02):
                try:
                    status = client.post(self._url, json=self._question).status_code
                except httpx.HTTPError as error:
                    self.refused.append(repr(error))
                    continue
                if status == 200:
                    self.answered += 1
                else:
                    self.refused.append(str(status))


class Drill:
    """One place in which flows are killed one after the other, and the table of what came of it."""

    def __init__(self, place: ForkedWorkplace, program: Path) -> None:
        self.place, self._program, self._round = place, program, 0
        self.rows: list[tuple[str, ...]] = []
        self._began = time.monotonic()

    def spec(self, name: str = "tiny", **fields: Any) -> Path:
        """A spec that differs from all before it."""
        self._round += 1
        engine = process_engine(self._program, ROUND=str(self._round))
        return self.place.spec(name, **{"engine": engine, **fields})

    def serving(self, name: str = "tiny") -> ReleaseRow:
        [row] = [row for row in self.place.releases(name) if row.state == "running"]
        return row

    def killed(self, point: str, *command: object) -> None:
        assert self.place.run(*command, code=None, point=point).returncode == KILLED

    def reconcile(self) -> str:
        fleet = self.place.folder / "fleet.yaml"
        told = self.place.json("reconcile", "--fleet", fleet)
        assert all(one["done"] for one in told["actions"]), told
        return ", ".join(one["deed"] for one in told["actions"]) or "nothing to do"

    def leaks_nothing(self, *serving: ReleaseRow) -> None:
        """Only what serves runs, and holds memory, ports, locks and files."""
        ids, names = {row.id for row in serving}, {f"moorage-{row.id}-r0-leader" for row in serving}
        assert {claim.release for claim in self.place.claims()} == ids
        assert self.place.running() == names
        assert {one.name for one in (self.place.home / "run").glob("*")} == names
        assert [file for half in HALF for file in self.place.home.rglob(half)] == []
        models = [row.model for row in self.place.ledger.releases.latest()]
        assert self.place.ledger.locks.holders([*models, "reconcile:fleet"]) == {}

    def tell(self, kind: str, point: str, done: str, caller: Caller | None, again: str) -> None:
        asked = f"{caller.answered} of {caller.answered + len(caller.refused)}" if caller else "-"
        self.rows.append((kind, point, done, asked, again))

    def table(self) -> str:
        header = ("what was killed", "at", "reconcile did", "old one answered", "then")
        lines = [header, *self.rows]
        widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
        text = "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )
        seconds = time.monotonic() - self._began
        return f"\n{text}\n{len(self.rows)} kills in {seconds:.0f} s, nothing leaked\n"


def show(request: pytest.FixtureRequest, drill: Drill) -> None:
    """Print the table of a drill, whatever pytest captures."""
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        reporter.write(drill.table())
