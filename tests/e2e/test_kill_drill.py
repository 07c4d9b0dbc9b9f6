"""The kill drill: a flow is killed at each of its steps, and reconciling once makes all good."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from moorage.release import ReleaseRow
from moorage.states import SERVING
from tests.e2e.conftest import installed_engine, process_engine
from tests.e2e.interrupted import POINTS, RETIRING, SECOND_TRY, STOP_FIRST
from tests.e2e.nursery import ForkedWorkplace
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.process, pytest.mark.server]

KILLED = -signal.SIGKILL
TAKEN_OVER = list(POINTS)[list(POINTS).index("after the record") :]
"""Points at which the new release serves already, so that the old one may end."""

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


@pytest.fixture(scope="module")
def drill(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_llama: Path,
    lifecycle_program: Path,
    prefect_server: PrefectServer,
    request: pytest.FixtureRequest,
) -> Iterator[Drill]:
    folder = tmp_path_factory.mktemp("drill")
    place = ForkedWorkplace(folder, tiny_llama, prefect_server.environment)
    drill = Drill(place, lifecycle_program)
    yield drill
    place.close()
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        reporter.write(drill.table())


@pytest.fixture
def serves(drill: Drill) -> ReleaseRow:
    """An old release."""
    if drill.place.ledger.releases.running(drill.place.named("tiny")) is None:
        drill.place.run("deploy", drill.spec())
    return drill.serving()


@pytest.mark.parametrize("point", POINTS)
def test_a_deploy(drill: Drill, serves: ReleaseRow, point: str) -> None:
    spec, new = drill.spec(), point in TAKEN_OVER
    with Caller(serves) as caller:
        drill.killed(point, "deploy", spec)
        if not new:
            done = drill.reconcile()
    if new:
        caller.refused.clear()  # it may have ended once its successor served
        with Caller(drill.serving()) as successor:
            done = drill.reconcile()
        assert successor.refused == []
    assert caller.refused == []
    assert caller.answered
    drill.leaks_nothing(drill.serving())
    assert (drill.serving().id == serves.id) != new
    again = drill.place.json("deploy", spec)["outcome"]
    assert again == ("unchanged" if new else "completed")
    drill.leaks_nothing(drill.serving())
    drill.tell("deploy", point, done, caller, again)


@pytest.mark.parametrize("point", STOP_FIRST)
def test_a_deploy_that_stops_the_old_release_first(drill: Drill, point: str) -> None:
    """The old one may have stopped by then: it serves again."""
    port = drill.place.first_port
    drill.place.run("deploy", drill.spec("fixed", port=port))
    others = drill.place.ledger.releases.in_states(SERVING)
    old, spec = drill.serving("fixed"), drill.spec("fixed", port=port)
    drill.killed(point, "deploy", spec)
    done = drill.reconcile()
    assert drill.serving("fixed").id == old.id
    drill.leaks_nothing(*others)
    with Caller(old) as caller:
        time.sleep(0.2)
    assert caller.answered
    assert caller.refused == []
    again = drill.place.json("deploy", spec)["outcome"]
    assert again == "completed"
    drill.tell("deploy (stop first)", point, done, None, again)
    drill.place.run("retire", drill.place.named("fixed"))


@pytest.mark.parametrize("point", SECOND_TRY)
def test_a_deploy_that_tries_twice(drill: Drill, lifecycle_program: Path, point: str) -> None:
    others = drill.place.ledger.releases.in_states(SERVING)
    engine = installed_engine(drill.place, lifecycle_program, "holds:1024")
    spec = drill.place.spec("twice", engine=engine)
    drill.killed(point, "deploy", spec)
    done = drill.reconcile()
    drill.leaks_nothing(*others)
    again = drill.place.json("deploy", spec)["outcome"]
    drill.leaks_nothing(*others, drill.serving("twice"))
    drill.tell("deploy (second try)", point, done, None, again)
    drill.place.run("retire", drill.place.named("twice"))


@pytest.mark.parametrize("point", RETIRING)
def test_a_retire(drill: Drill, point: str) -> None:
    others = drill.place.ledger.releases.in_states(SERVING)
    drill.place.run("deploy", drill.spec("ends"))
    drill.killed(point, "retire", drill.place.named("ends"))
    done = drill.reconcile()
    drill.leaks_nothing(*others)
    again = drill.place.json("retire", drill.place.named("ends"))["message"]
    assert again.endswith("was not running")
    drill.tell("retire", point, done, None, "was not running")


def test_nothing_is_left_to_do(drill: Drill) -> None:
    assert drill.reconcile() == "nothing to do"
