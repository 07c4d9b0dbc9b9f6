"""What the pipeline costs: a deploy's wall time less that of the same engine started by hand.

By hand means: the very command line of the plan, polled every 50 ms until it has generated a token.
Each round measures all variants one after the other, so that a drifting machine hits them alike.

    python -m benchmarks.overhead [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

REPOSITORY = Path(__file__).parents[1]
MODEL = "overhead"
POLL_SECONDS = 0.05
SERVER = "http://127.0.0.1:4277/api"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        server = bench.start_server()
        try:
            bench.warm_up()
            results = [bench.round() for _ in range(rounds)]
        finally:
            bench.stop()
            server.send_signal(signal.SIGTERM)
            server.wait()
    report(results)


class Bench:
    """A model, a home and an engine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        script = REPOSITORY / "scripts" / "make_tiny_model.py"
        subprocess.run([sys.executable, script, folder / "model"], check=True)
        self.spec = folder / "spec.yaml"
        self.spec.write_text(
            f"name: {MODEL}\nsource: file://model\n"
            "engine: {name: transformers, runtime: process}\n"
        )
        (folder / "prefect").mkdir()
        base = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
        homes = {"MOORAGE_HOME": str(folder / "home"), "PREFECT_HOME": str(folder / "prefect")}
        self.kept = {**base, **homes}
        # A separate home, because a fork server serves commands of a single Prefect server.
        own = {"MOORAGE_HOME": str(folder / "served"), "PREFECT_API_URL": SERVER}
        self.served = {**self.kept, **own}

    def start_server(self) -> subprocess.Popen[bytes]:
        """Start a separate Prefect server."""
        command = [sys.executable, "-m", "prefect", "server", "start", "--port", "4277"]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen(command, env=self.kept, **quiet)
        while not _answers(f"{SERVER}/health"):
            time.sleep(0.2)
        return server

    def warm_up(self) -> None:
        """Start the kept server and the fork server of commands."""
        self.deploy(self.kept)
        while not (self.folder / "home" / "api" / "commands").exists():
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the servers that commands have started."""
        for environment in (self.kept, self.served):
            self._moorage("server", "stop", env=environment)

    def round(self) -> dict[str, float]:
        """Measure each variant once, in seconds."""
        return {
            "engine by hand": self.by_hand(),
            "deploy, running server": self.deploy(self.served),
            "deploy, kept server": self.deploy(self.kept),
            "first deploy of a home": self.first_deploy(),
        }

    def first_deploy(self) -> float:
        """Wall time of a deploy that starts the kept server."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            homes = {"MOORAGE_HOME": f"{folder}/home", "PREFECT_HOME": f"{folder}/prefect"}
            fresh = {**self.kept, **homes}
            try:
                return self.deploy(fresh)
            finally:
                self._moorage("server", "stop", env=fresh)

    def deploy(self, environment: dict[str, str]) -> float:
        """Wall time of `moorage deploy`, from the shell's point of view."""
        begin = time.monotonic()
        self._moorage("deploy", str(self.spec), env=environment)
        took = time.monotonic() - begin
        self._moorage("retire", MODEL, env=environment)
        return took

    def by_hand(self) -> float:
        """Seconds of the engine's own start, polled until its first token."""
        plan = json.loads(self._moorage("plan", str(self.spec), "--json", env=self.served))
        container = plan["plan"]["containers"][0]
        argv = [token for flag in container["command"] for token in flag["tokens"]]
        variables = {entry["name"]: entry["value"] for entry in container["environment"]}
        work = Path(tempfile.mkdtemp(dir=self.folder))
        (work / MODEL).symlink_to(self.folder / "model")
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        begin = time.monotonic()
        engine = subprocess.Popen(argv, cwd=work, env={**os.environ, **variables}, **quiet)
        try:
            while not _generates(f"http://127.0.0.1:{container['port']}"):
                time.sleep(POLL_SECONDS)
            return time.monotonic() - begin
        finally:
            engine.terminate()
            engine.wait()

    def _moorage(self, *arguments: str, env: dict[str, str]) -> str:
        command = [sys.executable, "-m", "moorage.cli", *arguments]
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout


def report(results: list[dict[str, float]]) -> None:
    """Print medians, and the time that a deploy adds to the engine's own start, paired by round."""
    print(f"{len(results)} rounds; seconds: min / median / max")
    for name in results[0]:
        print(f"  {name:<24} {_spread([result[name] for result in results])}")
    print("overhead (deploy minus engine by hand of the same round)")
    for name in list(results[0])[1:]:
        difference = [result[name] - result["engine by hand"] for result in results]
        print(f"  {name:<24} {_spread(difference)}")


def _spread(values: list[float]) -> str:
    return f"{min(values):6.2f} / {statistics.median(values):6.2f} / {max(values):6.2f}"


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


def _generates(endpoint: str) -> bool:
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Say hello."}],
        "max_tokens": 1,
        "stream": False,
    }
    try:
        answer = httpx.post(f"{endpoint}/v1/chat/completions", json=body, timeout=60)
    except httpx.HTTPError:
        return False
    return answer.status_code == 200


if __name__ == "__main__":
    main()
