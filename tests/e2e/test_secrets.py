"""A planted secret is nowhere but in the engine: every place is searched for its value."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest
from prefect.blocks.system import Secret
from prefect.settings import temporary_settings

from tests.e2e.conftest import container_engine, process_engine
from tests.e2e.workplace import Workplace
from tests.prefect_server import PrefectServer, prefect_server
from tests.waiting import until

__all__ = ["prefect_server"]

pytestmark = [pytest.mark.server, pytest.mark.docker]

SECRETS = {"API_TOKEN": "PLANTED_VARIABLE", "OTHER_TOKEN": "PLANTED_BLOCK"}
LOOK_SECONDS = 0.05


class Planted:
    """Two secrets, one in the environment and one in a Prefect block, and the search for them."""

    def __init__(self, workplace: Workplace, server: PrefectServer) -> None:
        self.workplace, self.server = workplace, server
        # Quotes and a dollar sign: what a shell would take apart.
        self.variable, self.block = (f"it's ${uuid4().hex}" for _ in range(2))
        workplace.environment["PLANTED_VARIABLE"] = self.variable
        # All that Prefect logs is shown and sent, tracebacks of tasks that failed too.
        workplace.environment["PREFECT_LOGGING_LEVEL"] = "DEBUG"
        with temporary_settings(server.settings):
            Secret(value=self.block).save("planted-block", overwrite=True, _sync=True)  # type: ignore[call-arg]

    @property
    def values(self) -> tuple[str, ...]:
        """Their parts that no quoting changes."""
        return tuple(value.partition("$")[2] for value in (self.variable, self.block))

    def is_in(self, text: str | bytes) -> bool:
        raw = text.encode() if isinstance(text, str) else text
        return any(value.encode() in raw for value in self.values)

    def must_be_nowhere(self) -> None:
        """Search all that is kept: the ledger, Prefect's database and API, the home."""
        home, prefect = self.workplace.home, Path(self.server.environment["PREFECT_HOME"])
        files = [path for root in (home, prefect) for path in root.rglob("*") if path.is_file()]
        assert any(path.name == "ledger.db" for path in files)
        assert any(path.name == "prefect.db" for path in files)
        assert [path for path in files if self.is_in(path.read_bytes())] == []
        assert not self.is_in("".join(_rows(home / "ledger.db")))
        self._wait_for_task_runs()
        for request in ("logs", "artifacts", "flow_runs", "task_runs", "block_documents"):
            found = self.server.post(f"/{request}/filter", {"limit": 200})
            assert not self.is_in(json.dumps(found)), request

    def _wait_for_task_runs(self) -> None:
        """Wait until a look finds no more than the one before it: they are written each second."""
        looks: list[list[tuple[str, str]]] = []

        def is_settled() -> bool:
            found = self.server.post("/task_runs/filter", {"limit": 200})
            looks.append([(run["id"], run["state_id"]) for run in found])
            return len(looks) > 1 and looks[-1] == looks[-2]

        until(is_settled, pause=2)

    @contextmanager
    def watching_command_lines(self) -> Iterator[None]:
        """Look at the command line of every process of the machine, again and again."""
        seen: list[str] = []
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(LOOK_SECONDS):
                lines = (" ".join(one.info["cmdline"] or ()) for one in _processes())
                seen.extend(line for line in lines if self.is_in(line))

        watch = threading.Thread(target=look, daemon=True)
        watch.start()
        try:
            yield
        finally:
            ended.set()
            watch.join()
        assert seen == []

    def run(self, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command, whose output must not tell them."""
        done = self.workplace.run(*arguments, code=code)
        assert not self.is_in(done.stdout + done.stderr)
        return done


@pytest.fixture
def planted(workplace: Workplace, prefect_server: PrefectServer) -> Planted:
    return Planted(workplace, prefect_server)


def as_process(program: Path, image: str, behaviour: str) -> dict[str, Any]:  # noqa: ARG001
    return process_engine(program, behaviour)


def in_container(program: Path, image: str, behaviour: str) -> dict[str, Any]:  # noqa: ARG001
    return container_engine(image, behaviour)


Way = Callable[[Path, str, str], dict[str, Any]]
WAYS = pytest.mark.parametrize("way", [as_process, in_container])


@WAYS
def test_only_the_engine_knows_its_secrets(
    planted: Planted, lifecycle_program: Path, lifecycle_image: str, way: Way
) -> None:
    workplace = planted.workplace
    engine = way(lifecycle_program, lifecycle_image, "ok")
    spec = workplace.spec(engine=engine, secrets=SECRETS)
    planted.run("plan", spec)
    with planted.watching_command_lines():
        deployed = planted.run("deploy", spec, "--json")
    (workload,) = json.loads(deployed.stdout)["release"]["workloads"]
    environment = _environment_of(workload)
    assert environment["API_TOKEN"] == planted.variable
    assert environment["OTHER_TOKEN"] == planted.block

    if way is in_container:
        inspected = _docker("inspect", workload["name"])
        assert '"LIFECYCLE=ok"' in inspected
        assert not planted.is_in(inspected)
        _docker("restart", workload["name"])
        assert _environment_of(workload)["API_TOKEN"] == planted.variable
    name = workplace.named("tiny")
    for command in ("show", "status", "history", "logs"):
        planted.run(command, name)
    planted.run("show", name, "--json")
    planted.must_be_nowhere()
    planted.run("retire", name)
    planted.must_be_nowhere()


@WAYS
def test_an_engine_that_tells_its_secrets_is_not_repeated(
    planted: Planted, lifecycle_program: Path, lifecycle_image: str, way: Way
) -> None:
    workplace = planted.workplace
    engine = way(lifecycle_program, lifecycle_image, "leak")
    spec = workplace.spec(engine=engine, secrets=SECRETS)
    failed = planted.run("deploy", spec, code=6)
    assert "[secret PLANTED_VARIABLE]" in failed.stderr
    assert "Traceback" in failed.stdout + failed.stderr
    failed = planted.run("deploy", spec, "--json", code=6)
    error = json.loads(failed.stdout)["error"]
    assert "Bearer [secret PLANTED_VARIABLE]" in error["log_tail"]
    assert "and [secret PLANTED_BLOCK]" in error["detail"]
    name = workplace.named("tiny")
    for command in ("show", "logs", "history"):
        planted.run(command, name)
    until(lambda: "[secret PLANTED_BLOCK]" in _newest_logs(planted.server))
    planted.must_be_nowhere()


def _environment_of(workload: dict[str, Any]) -> dict[str, str]:
    """What the engine itself was given, as root sees it."""

    def started() -> dict[str, str] | None:
        pid = int(workload["identity"].partition("@")[0]) if "@" in workload["identity"] else 0
        pid = pid or int(_docker("inspect", "-f", "{{.State.Pid}}", workload["name"]))
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        for process in family:
            if Path(process.cmdline()[0]).name == "vllm":
                return process.environ()
        return None

    return until(started)


def _docker(*words: str) -> str:
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=True).stdout


def _processes() -> Iterator[Any]:
    return psutil.process_iter(["cmdline"])


def _rows(path: Path) -> Iterator[str]:
    with closing(sqlite3.connect(path)) as ledger:
        tables = ledger.execute("select name from sqlite_master where type = 'table'").fetchall()
        for (table,) in tables:
            yield from map(str, ledger.execute(f'select * from "{table}"'))


def _newest_logs(server: PrefectServer) -> str:
    return json.dumps(server.post("/logs/filter", {"limit": 200, "sort": "TIMESTAMP_DESC"}))
