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
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import flows.deploy_model
import flows.reconcile_fleet
import flows.retire_model  # noqa: F401  (so that no command has to)
from moorage.cli.app import app
from moorage.cli.flows import PREFECT_DEFAULTS
from moorage.common.failures import Cause, Failure
from tests.e2e.interrupted import arm
from tests.e2e.outages import kill_whole
from tests.e2e.workplace import REPOSITORY, Workplace

NOTHING = ""
KILLS, FAILS, STOPS = "kills itself", "fails", "gets SIGTERM"

LATE = (
    "transformers.models.llama.configuration_llama",  # a deploy reads one
    "moorage.adapters.ledger.migrating",
    "flows.rollback_model",
    "prefect.engine",
    "prefect.task_engine",
    "prefect.utilities.visualization",
    "anyio._backends._asyncio",
    "fastapi",
    "gpustack_runner",
)
"""What a command imports once it needs it: half a second of each one's time."""


class Lane:
    """Where one command at a time is forked from.

    Args:
        orders: Where it is told what to do.
        answers: Where it tells how that ended.
    """

    def __init__(self, orders: IO[str], answers: IO[str]) -> None:
        self._orders, self._answers = orders, answers

    def run(
        self,
        arguments: list[str],
        environment: dict[str, str],
        folder: Path,
        point: str = NOTHING,
        victim: int = 0,
        how: str = KILLS,
        signals: Mapping[int, float] = {},
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, or to the point at which something happens to it.

        It kills a victim where there is one, else what `how` says (`HAPPENS`).

        Args:
            arguments: Of the command.
            environment: What it has beside the nursery's own.
            folder: Where its output is kept.
            point: One of `EVERY_POINT`; empty = it comes to its end.
            victim: Process that is killed there with all that it has started; 0 = none.
            how: What happens there without a victim.
            signals: Signals that it gets, each so many seconds after its start.
        """
        files = [folder / "stdout", folder / "stderr"]
        order = {
            "arguments": arguments,
            "environment": environment,
            "files": [str(file) for file in files],
            "point": point,
            "victim": victim,
            "how": how,
            "signals": list(signals.items()),
        }
        self._send(order)
        code = int(self._answers.readline())
        out, err = (file.read_text() for file in files)
        return subprocess.CompletedProcess(arguments, code, out, err)

    def close(self) -> None:
        """End it; its command has ended."""
        self._orders.close()

    def _send(self, order: dict[str, Any]) -> None:
        self._orders.write(json.dumps(order) + "\n")
        self._orders.flush()


class Nursery(Lane):
    """The process that has imported everything: the first lane, and what others branch off from."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.nursery"],
            cwd=REPOSITORY,
            env={**PREFECT_DEFAULTS, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin
        assert self._process.stdout
        super().__init__(self._process.stdin, self._process.stdout)

    def lane(self, folder: Path) -> Lane:
        """Another lane, so that commands run side by side; it ends when it is closed.

        Args:
            folder: An empty one.
        """
        ways = [folder / "orders", folder / "answers"]
        for way in ways:
            os.mkfifo(way)
        self._send({"lane": [str(way) for way in ways]})
        return Lane(ways[0].open("w"), ways[1].open())

    def close(self) -> None:
        """End it; every command has ended."""
        super().close()
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

    def lanes(self, count: int) -> Iterator[Lane]:
        """Lanes for commands that run side by side; they are closed before this place is."""
        assert self._nursery
        for number in range(count):
            folder = self.folder / f"lane-{number}"
            folder.mkdir()
            yield self._nursery.lane(folder)

    def close(self) -> None:
        if self._own:
            self._own.close()
        super().close()


def main() -> None:
    """Fork a command for each line of the input, and tell how it ended."""
    for name in LATE:
        import_module(name)
    assert threading.active_count() == 1, "what has threads cannot be forked"
    _obey(sys.stdin, sys.stdout)


def _obey(orders: IO[str], answers: IO[str]) -> None:
    for line in orders:
        order = json.loads(line)
        child = os.fork()
        if not child and "lane" in order:
            ways = [Path(way) for way in order["lane"]]
            with ways[0].open() as own_orders, ways[1].open("w") as own_answers:
                return _obey(own_orders, own_answers)
        if not child:
            _prepare(order)
            app(order["arguments"])
        if "lane" in order:
            continue
        _, status = os.waitpid(child, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
        answers.flush()
    return None


def _prepare(order: dict[str, Any]) -> None:
    os.environ.update(order["environment"])
    for number, file in enumerate(order["files"], start=1):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, number)
    if order["point"]:
        victim = order["victim"]
        arm(order["point"], (lambda: kill_whole(victim)) if victim else HAPPENS[order["how"]])
    for number, seconds in order["signals"]:
        clock = threading.Timer(seconds, os.kill, (os.getpid(), number))
        clock.daemon = True
        clock.start()


def _fail() -> None:
    raise Failure(Cause.LAUNCH_REFUSED, "told to fail here")


HAPPENS: dict[str, Callable[[], None] | None] = {
    KILLS: None,
    FAILS: _fail,
    STOPS: lambda: os.kill(os.getpid(), signal.SIGTERM),
}


if __name__ == "__main__":
    main()
