from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from moorage.adapters.ledger import Ledger
from moorage.adapters.prefect.home_server import QUIET
from tests.e2e.conftest import lifecycle_program, tiny_llama
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.policies import open_policy
from tests.prefect_server import PrefectApi, end, free_port
from tests.waiting import until

__all__ = ["lifecycle_program", "tiny_llama"]

COMMAND_SECONDS = 400


class Team:
    """A team's server, started and stopped as `make up` and `make down` do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "team"
        self.port, self.postgres_port = free_port(), free_port()
        self.environment = {"PREFECT_HOME": str(folder / "prefect"), **QUIET}
        policy = open_policy(folder / "policy.yaml")
        self.home = {"MOORAGE_HOME": str(folder / "home"), "MOORAGE_POLICY": str(policy)}

    def run(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        """`up` or `down`; what it says is on stderr."""
        words = ["--folder", str(self.folder), "--port", str(self.port)]
        words += ["--postgres-port", str(self.postgres_port), *options]
        given = {**os.environ, **self.environment, **self.home}
        for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "MOORAGE_LEDGER_URL"):
            given.pop(name, None)
        return subprocess.run(
            [sys.executable, "-m", "scripts.team", command, *words],
            cwd=REPOSITORY,
            env=given,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def sourced(self) -> dict[str, str]:
        """What a shell of the team has after it read the file."""
        lines = (self.folder / "environment").read_text().splitlines()
        pairs = (line.removeprefix("export ").partition("=") for line in lines)
        return {**self.environment, **{name: value.strip("'") for name, _, value in pairs}}

    def passwords(self) -> list[str]:
        return [line.split(":")[-1] for line in (self.folder / "pgpass").read_text().splitlines()]

    @property
    def login(self) -> str:
        return (self.folder / "api" / "login").read_text().strip()

    @property
    def api(self) -> PrefectApi:
        return PrefectApi(f"http://127.0.0.1:{self.port}/api", self.login)


class TeamPlace(Workplace):
    """A workplace whose ledger is the team's."""

    def __init__(self, folder: Path, model: Path, team: Team) -> None:
        super().__init__(folder, model, team.sourced())
        self.home = Path(team.home["MOORAGE_HOME"])
        self.environment.update(team.home)
        self._password = team.passwords()[-1]

    @property
    def ledger(self) -> Ledger:
        url = self.environment["MOORAGE_LEDGER_URL"].replace("@", f":{self._password}@")
        self._ledger = self._ledger or Ledger(url)
        return self._ledger


class Worker:
    """A process worker that takes from one queue."""

    def __init__(self, place: TeamPlace, queue: str, **environment: str) -> None:
        self.log = place.folder / f"worker-{queue}-{time.monotonic_ns()}.log"
        self.name = f"worker-of-{queue}"
        words = ["worker", "start", "--pool", "moorage", "--work-queue", queue]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "prefect", *words, "--name", self.name],
                env={
                    **place.environment,
                    "PREFECT_WORKER_QUERY_SECONDS": "2",
                    "PYTHONPATH": str(REPOSITORY),
                    **environment,
                },
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def wait(self) -> None:
        until(
            lambda: "started!" in self.log.read_text(),
            unless=lambda: self.process.poll() is not None and self.log.read_text(),
        )

    def took(self, flow_run: str) -> bool:
        """Whether it submitted a flow run."""
        return flow_run in self.log.read_text()

    def stop(self) -> None:
        end(self.process, signal.SIGINT)


@pytest.fixture(scope="session")
def team() -> Iterator[Team]:
    """A team's server that is not started yet. PostgreSQL's own user has to reach the folder."""
    if not sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        pytest.skip("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/initdb")
    pytest.importorskip("psycopg", reason="psycopg is missing: pip install '.[postgres]'")
    folder = Path(tempfile.mkdtemp(prefix="moorage-team-"))
    folder.chmod(0o755)
    team = Team(folder)
    yield team
    stopped = team.run("down")
    assert stopped.returncode == 0, stopped.stderr
    rmtree(folder)
