"""A place of its own for end-to-end tests: home, specs, the command line, and a clean end."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil
from ruamel.yaml import YAML

from moorage.adapters.hosts.processes import MARK
from moorage.adapters.ledger import Ledger
from moorage.engines.labels import LABEL_MODEL
from moorage.inventory.claims import Claim
from moorage.releases.release_row import ReleaseRow
from tests.fork_server import REPOSITORY, ForkedProcess, server_for
from tests.policies import open_policy
from tests.waiting import until

COMMAND_SECONDS = 600
__all__ = ["REPOSITORY"]
FIRST_PORT, PORTS, RANGES = 20_000, 40, 300
"""Workplaces take ranges of ports, all below 32768: outgoing connections take theirs above."""


class Workplace:
    """One test's home, with its own ledger and its own names."""

    def __init__(self, folder: Path, model: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.model = model
        self.prefix = f"t{os.getpid()}-{time.monotonic_ns() % 10**9}"
        policy = open_policy(folder / "policy.yaml")
        home = {"MOORAGE_HOME": str(self.home), "MOORAGE_POLICY": str(policy)}
        self.environment = {**os.environ, **environment, **home}
        self._ledger: Ledger | None = None
        # Ledgers of other tests do not know of each other, so each gets its own range of ports.
        self.first_port, self._range = take_range()
        ports = f"{self.first_port}-{self.first_port + PORTS - 1}"
        (folder / "fleet.yaml").write_text(f"hosts: [{{name: local, ports: {ports}}}]\n")

    @property
    def ledger(self) -> Ledger:
        self._ledger = self._ledger or Ledger(f"sqlite:///{self.home / 'ledger.db'}")
        return self._ledger

    def spec(self, name: str = "tiny", file: str = "", **fields: Any) -> Path:
        """Write a spec; names are unique to this test, so that containers are too.

        Nothing lingers that is stopped: only a test with clients has somebody to wait for.
        """
        content = {
            "name": self.named(name),
            "source": f"file://{self.model}",
            "replace": {"linger_seconds": 0},
            **fields,
        }
        path = self.folder / f"{file or name}.yaml"
        with path.open("w") as written:
            YAML().dump(content, written)
        return path

    def named(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def run(
        self, *arguments: object, code: int | None = 0, **happening: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, forked off a process that has imported everything.

        Args:
            arguments: Of the command.
            code: The exit status that it must have; None = any.
            happening: What happens to it meanwhile, see `ForkServer.run`.
        """
        words = list(map(str, arguments))
        server = server_for(self.environment)
        done = server.run(words, self.environment, COMMAND_SECONDS, **happening)
        assert code is None or done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    def start(self, *arguments: object) -> ForkedProcess:
        """Start a command as `run` does, and go on."""
        words = list(map(str, arguments))
        return server_for(self.environment).begin(words, self.environment)

    def spawn(self, *arguments: object) -> subprocess.Popen[str]:
        """Start a command as users do, in an interpreter of its own, and go on."""
        return subprocess.Popen(
            self.argv(*arguments),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell that runs the tests in the background hands down an ignored Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def json(self, *arguments: object, code: int | None = 0) -> Any:
        """Run a command with `--json` and read its answer."""
        return json.loads(self.run(*arguments, "--json", code=code).stdout)

    def argv(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "moorage.cli.app", *map(str, arguments)]

    def claims(self) -> tuple[Claim, ...]:
        return self.ledger.claims.all()

    def releases(self, name: str = "tiny") -> list[ReleaseRow]:
        return self.ledger.releases.of_model(self.named(name))

    def processes(self) -> list[psutil.Process]:
        """What runs of this test's process workloads, supervisors included."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK, "").startswith(str(self.home)):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def running(self) -> set[str]:
        """Names of the workloads that run as processes."""
        names = set()
        for process in self.processes():
            with suppress(psutil.Error):  # it may end meanwhile
                names.add(Path(process.environ()[MARK]).name)
        return names

    def containers(self) -> list[str]:
        """Names of this test's containers, in whatever state."""
        if not shutil.which("docker"):
            return []
        command = ["docker", "ps", "-a", "--filter", f"label={LABEL_MODEL}"]
        listed = subprocess.run(
            [*command, "--format", "{{.Names}}"], capture_output=True, text=True, check=False
        )
        return [name for name in listed.stdout.split() if f"-{self.prefix}-" in name]

    def wait_until(self, happened: Callable[[], bool], by: ForkedProcess | None = None) -> None:
        """Wait for something that a command in the background will do."""
        until(happened, unless=lambda: by and by.poll() is not None and by.communicate())

    def is_clean(self) -> bool:
        """Whether nothing is claimed and nothing runs."""
        return not self.claims() and not self.processes() and not self.containers()

    def close(self) -> None:
        for process in self.processes():
            process.kill()
        for name in self.containers():
            subprocess.run(["docker", "rm", "-f", name], capture_output=True, check=False)
        if self._ledger:
            self._ledger.close()
        self._range.close()


def take_range() -> tuple[int, IO[str]]:
    """First port of a range that no test of this machine has, and the file whose lock says so."""
    folder = Path(tempfile.gettempdir(), "moorage-test-ports")
    folder.mkdir(exist_ok=True)
    first = random.randrange(RANGES)
    for number in (*range(first, RANGES), *range(first)):
        file = Path(folder, str(number)).open("w")  # noqa: SIM115 - it is open as long as the range is taken
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return FIRST_PORT + number * PORTS, file
        file.close()
    raise RuntimeError(f"all {RANGES} ranges of ports are taken")
