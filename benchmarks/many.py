"""Many small models on this machine, and the cost of commands about them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from moorage.adapters.hosts.processes import MARK
from scripts.team.__main__ import down, programs, up
from scripts.team.place import Place

REPOSITORY = Path(__file__).parents[1]
PROGRAM = Path(
    os.environ.get("MOORAGE_BUILD_CACHE", Path.home() / ".cache" / "moorage" / "images"),
    "lifecycle",
    "vllm",
)
SERVER_PORT, POSTGRES_PORT = 14278, 15433
PORTS = "18000-18999"
"""A range of ports that no test uses."""


class Servers:
    """Running PostgreSQL with a Prefect server, as `make up` starts them for a team.

    Args:
        folder: Folder for their data; PostgreSQL's own user has to be able to enter it.
    """

    def __init__(self, folder: Path) -> None:
        self._place = Place(folder / "team", SERVER_PORT, POSTGRES_PORT)
        os.environ["PREFECT_HOME"] = str(folder / "prefect")
        up(self._place, serve=False)
        base = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
        own = {"PREFECT_HOME": str(folder / "prefect")}
        self.environment = {**base, **own, **self._place.environment()}

    def seconds(self) -> float:
        """Processor time of both so far, without their ended children."""
        found = filter(None, (program.process() for program in programs(self._place)))
        return sum(
            sum(process.cpu_times()[:2])
            for server in found
            for process in (server, *server.children(recursive=True))
            if process.is_running()
        )

    def close(self) -> None:
        """Stop both servers."""
        down(self._place)


class Many:
    """A home with the specs of many models; the engines are the tiny server of the tests.

    Args:
        folder: Folder for all files; other users have to be able to enter it.
        models: Number of models.
        servers: Prefect's server and the ledger.
    """

    def __init__(self, folder: Path, models: int, servers: Servers) -> None:
        self.models, self.specs, self._servers = models, folder / "specs", servers
        self.fleet = self.specs / "fleet.yaml"
        script = REPOSITORY / "scripts"
        subprocess.run([script / "build_lifecycle_image.sh", "--binary-only"], check=True)
        words: list[str | Path] = [sys.executable, script / "make_tiny_model.py", folder / "model"]
        subprocess.run(words, check=True)
        self.specs.mkdir()
        self.fleet.write_text(f"hosts: [{{name: local, ports: {PORTS}}}]\n")
        for number in range(models):
            self._write(f"m{number:03}", folder / "model")
        self._home = folder / "home"
        self.environment = {**servers.environment, "MOORAGE_HOME": str(self._home)}

    def measure(self, what: str, *arguments: object) -> dict[str, Any]:
        """Run a command and return its cost.

        Our own processor time is the user and system time of the command, of the children that it
        waited for, and of the supervisors that it started and that still run.
        """
        before, begin, began = self._servers.seconds(), time.monotonic(), time.time()
        with tempfile.TemporaryFile() as output:
            command = subprocess.Popen(
                [sys.executable, "-m", "moorage.cli.app", *map(str, arguments)],
                cwd=REPOSITORY,
                env=self.environment,
                stdout=output,
                stderr=output,
            )
            _, status, used = os.wait4(command.pid, 0)
            if status:
                output.seek(0)
                sys.exit(output.read().decode()[-3000:])
        wall = time.monotonic() - begin
        supervisors = sum(map(_seconds, self._supervisors(began)))
        own = used.ru_utime + used.ru_stime + supervisors
        return {
            "what": what,
            "models": self.models,
            "wall s": round(wall, 1),
            "own cpu s": round(own, 1),
            "of supervisors": round(supervisors, 1),
            "own cpu s per model": round(own / self.models, 3),
            "servers' cpu s per model": round((self._servers.seconds() - before) / self.models, 3),
            "load": round(os.getloadavg()[0], 1),
        }

    def close(self) -> None:
        """Kill every engine."""
        for process in list(self._marked()):
            with suppress(psutil.NoSuchProcess):  # it may end with its supervisor
                process.kill()

    def _supervisors(self, began: float) -> Iterator[psutil.Process]:
        """The supervisors that were started since `began`."""
        for process in self._marked():
            if process.create_time() >= began and "supervisor" in " ".join(process.cmdline()):
                yield process

    def _marked(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK, "").startswith(str(self._home)):
                    yield process
            except psutil.Error:
                continue

    def _write(self, name: str, model: Path) -> None:
        words = "--host {{host}} --port {{port}} --served-model-name {{model_name}}"
        spec = {
            "name": name,
            "source": f"file://{model}",
            "engine": {
                "name": "vllm",
                "runtime": "process",
                "command": [str(PROGRAM), "serve", "{{model_path}}", *words.split()],
            },
            "placement": {"accelerators": 0, "ram": "8MiB"},
            "readiness": {"deadlines": {"load_seconds": 120}},
            "stopping": {"drain_seconds": 0},
        }
        (self.specs / f"{name}.yaml").write_text(json.dumps(spec))


def _seconds(process: psutil.Process) -> float:
    try:
        return sum(process.cpu_times()[:2])
    except psutil.Error:
        return 0.0
