"""What redeploying many models in one flow run costs of our own processor time, for each model.

The engines are the tiny server of the tests, so nearly everything is ours. Counted are user and
system time of the command, and beside it that of the Prefect server. What the command costs without
any model, mostly imports, is measured too: it is part of each figure.

    python benchmarks/redeploying.py [--models 100] [--wave 25]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

from moorage.adapters.process import MARK

REPOSITORY = Path(__file__).parents[1]
SERVER = "http://127.0.0.1:4278/api"
PROGRAM = Path(
    os.environ.get("MOORAGE_BUILD_CACHE", Path.home() / ".cache" / "moorage" / "images"),
    "lifecycle",
    "vllm",
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--wave", default="25")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), chosen.models)
        try:
            bench.measure("apply, all new", "apply", bench.specs, "--yes", "--at-once", 4)
            waves = ("--all", "--wave", chosen.wave, "--at-once", 4, "--fleet", bench.fleet)
            bench.measure("redeploy, no model at all", "redeploy", "none-*", *waves[1:])
            bench.measure("redeploy, nothing moved", "redeploy", *waves)
            bench.measure("redeploy --force, all", "redeploy", *waves, "--force")
        finally:
            bench.close()


class Bench:
    """A home, a server, and many small models.

    Args:
        folder: For all of it.
        models: How many.
    """

    def __init__(self, folder: Path, models: int) -> None:
        self.models, self.specs = models, folder / "specs"
        self.fleet = self.specs / "fleet.yaml"
        script = REPOSITORY / "scripts"
        subprocess.run([script / "build_lifecycle_image.sh", "--binary-only"], check=True)
        subprocess.run(
            [sys.executable, script / "make_tiny_model.py", folder / "model"], check=True
        )
        self.specs.mkdir()
        self.fleet.write_text("hosts: [{name: local, ports: 21000-21999}]\n")
        for number in range(models):
            self._write(f"m{number:03}", folder / "model")
        base = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
        homes = {"MOORAGE_HOME": str(folder / "home"), "PREFECT_HOME": str(folder / "prefect")}
        self._environment = {**base, **homes, "PREFECT_API_URL": SERVER}
        (folder / "prefect").mkdir()
        self._server = self._start()

    def measure(self, what: str, *arguments: object) -> None:
        """Run a command and print what it cost."""
        before, begin = self._server_seconds(), time.monotonic()
        with tempfile.TemporaryFile() as output:
            command = subprocess.Popen(
                [sys.executable, "-m", "moorage.cli.app", *map(str, arguments)],
                env=self._environment,
                stdout=output,
                stderr=output,
            )
            _, status, used = os.wait4(command.pid, 0)
            if status:
                output.seek(0)
                sys.exit(output.read().decode()[-3000:])
        own = used.ru_utime + used.ru_stime
        told = {
            "what": what,
            "models": self.models,
            "wall s": round(time.monotonic() - begin, 1),
            "own cpu s": round(own, 1),
            "own cpu s per model": round(own / self.models, 3),
            "server cpu s per model": round((self._server_seconds() - before) / self.models, 3),
        }
        print(json.dumps(told), flush=True)

    def close(self) -> None:
        """End every engine, and the server."""
        home = self._environment["MOORAGE_HOME"]
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK, "").startswith(home):
                    process.kill()
            except psutil.Error:
                continue
        self._server.send_signal(signal.SIGTERM)
        self._server.wait()

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

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "prefect", "server", "start", "--port", "4278"]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen(command, env=self._environment, **quiet)
        while not _answers():
            time.sleep(0.2)
        return server

    def _server_seconds(self) -> float:
        server = psutil.Process(self._server.pid)
        processes = [server, *server.children(recursive=True)]
        return sum(sum(process.cpu_times()[:2]) for process in processes)


def _answers() -> bool:
    try:
        return httpx.get(f"{SERVER}/health", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


if __name__ == "__main__":
    main()
