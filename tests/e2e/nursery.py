"""Commands of moorage, each in a fork of a process that has imported everything already.

Importing takes longer than most commands. A fork has a life of its own: it can be killed anywhere.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import flows.deploy_model
import flows.reconcile_fleet
import flows.retire_model  # noqa: F401  (so that no command has to)
from moorage.cli.app import app
from moorage.failures import Cause, Failure
from tests.e2e.interrupted import arm
from tests.e2e.outages import kill_whole
from tests.e2e.workplace import REPOSITORY, Workplace

NOTHING = ""
KILLS, FAILS, STOPS = "kills itself", "fails", "gets SIGTERM"


class Nursery:
    """Where commands are forked from."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.nursery"],
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self,
        arguments: list[str],
        environment: dict[str, str],
        folder: Path,
        point: str = NOTHING,
        victim: int = 0,
        how: str = KILLS,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, or to the point at which something happens to it.

        It kills a victim where there is one, else what `how` says (`HAPPENS`).
        """
        files = [folder / "stdout", folder / "stderr"]
        order = {
            "arguments": arguments,
            "environment": environment,
            "files": [str(file) for file in files],
            "point": point,
            "victim": victim,
            "how": how,
        }
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        out, err = (file.read_text() for file in files)
        return subprocess.CompletedProcess(arguments, code, out, err)

    def close(self) -> None:
        """End it; every command has ended."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


class ForkedWorkplace(Workplace):
    """A workplace whose commands come from a nursery.

    Args:
        folder: Of the workplace.
        model: Directory of a model.
        environment: How to reach the Prefect server.
        nursery: Of the same environment; None = it gets one of its own.
    """

    def __init__(
        self,
        folder: Path,
        model: Path,
        environment: dict[str, str],
        nursery: Nursery | None = None,
    ) -> None:
        super().__init__(folder, model, environment)
        self._own = None if nursery else Nursery(self.environment)
        self._nursery = nursery or self._own

    def run(
        self,
        *arguments: object,
        code: int | None = 0,
        point: str = NOTHING,
        victim: int = 0,
        how: str = KILLS,
    ) -> subprocess.CompletedProcess[str]:
        words = list(map(str, arguments))
        assert self._nursery
        done = self._nursery.run(words, self.environment, self.folder, point, victim, how)
        assert code is None or done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    def close(self) -> None:
        if self._own:
            self._own.close()
        super().close()


def main() -> None:
    """Fork a command for each line of the input, and tell how it ended."""
    import_module("transformers.models.llama.configuration_llama")  # a deploy reads one
    import_module("moorage.adapters.ledger.migrating")
    assert threading.active_count() == 1, "what has threads cannot be forked"
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            _prepare(order)
            app(order["arguments"])
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _prepare(order: dict[str, Any]) -> None:
    os.environ.update(order["environment"])
    for number, file in enumerate(order["files"], start=1):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, number)
    if order["point"]:
        victim = order["victim"]
        arm(order["point"], (lambda: kill_whole(victim)) if victim else HAPPENS[order["how"]])


def _fail() -> None:
    raise Failure(Cause.LAUNCH_REFUSED, "told to fail here")


HAPPENS: dict[str, Callable[[], None] | None] = {
    KILLS: None,
    FAILS: _fail,
    STOPS: lambda: os.kill(os.getpid(), signal.SIGTERM),
}


if __name__ == "__main__":
    main()
