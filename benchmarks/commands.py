"""What a person waits for: wall and CPU of commands that change nothing.

Each is run as a fork of the process that waits beside the kept server, and in a process of its own.
Each round runs all of them one after the other, so that a drifting machine hits them alike. The
first round is told apart: files and byte code may not be in memory yet.

    python -m benchmarks.commands [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from moorage.cli.fork_server import fork_server_process

REPOSITORY = Path(__file__).parents[1]
MOORAGE = (sys.executable, "-m", "moorage.cli")
WORDS = (
    *("--help", "--version", "status", "history tiny", "show tiny", "endpoint tiny --json"),
    *("logs tiny", "diff tiny.v1 tiny.v2", "fleet", "engines", "models", "usage", "doctor"),
    *("plan tiny", "memory tiny", "reconcile --dry-run", "redeploy --all --dry-run"),
)
"""Arguments of the commands; `tiny` is the model of the home, which was deployed twice."""


MISSING = 8
"""Exit code of `moorage doctor` where something is missing."""


class Cost(NamedTuple):
    """Wall and processor seconds of one run."""

    wall: float
    cpu: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        environment = prepare(place)
        try:
            report([dict(measure(place, environment)) for _ in range(rounds + 1)])
        finally:
            run([*MOORAGE, "retire", "tiny"], place, environment)
            run([*MOORAGE, "server", "stop"], place, environment)


def prepare(place: Path) -> dict[str, str]:
    """Make a home in which a tiny model is deployed twice; returns the variables for commands."""
    base = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "MOORAGE_"))}
    own = {"MOORAGE_HOME": str(place / "home"), "PREFECT_HOME": str(place / "prefect")}
    environment = {**base, **own, "PYTHONPATH": str(REPOSITORY)}
    script = REPOSITORY / "scripts" / "make_tiny_model.py"
    run([sys.executable, str(script), "model"], place, environment)
    (place / "deployments").mkdir()
    for context in (256, 512):
        spec = {"name": "tiny", "source": "file://../model", "context": context}
        engine = {"engine": {"name": "transformers", "runtime": "process"}}
        Path(place, "deployments", "tiny.yaml").write_text(json.dumps({**spec, **engine}))
        run([*MOORAGE, "deploy", "tiny"], place, environment)
    while not (place / "home" / "api" / "commands").exists():
        time.sleep(0.1)
    return environment


def measure(place: Path, environment: dict[str, str]) -> Iterator[tuple[str, Cost]]:
    """Run each command once, and the programs that they are compared with."""
    yield "python -c pass", run([sys.executable, "-c", "pass"], place, environment)
    if shutil.which("docker"):
        yield "docker ps", run(["docker", "ps"], place, environment)
    alone = {**environment, "MOORAGE_FORKED": "0"}
    for words in WORDS:
        command = [*MOORAGE, *words.split()]
        yield f"moorage {words}, forked", run(command, place, environment)
        yield f"moorage {words}", run(command, place, alone)


def run(command: list[str] | tuple[str, ...], place: Path, environment: dict[str, str]) -> Cost:
    """Run one command and return its cost."""
    begin, before = time.perf_counter(), processor_seconds(place / "home")
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, check=False)
    cost = Cost(time.perf_counter() - begin, processor_seconds(place / "home") - before)
    if done.returncode not in (0, MISSING) and command[0] != "docker":
        raise SystemExit(f"{command}: {done.stderr.decode()}")
    return cost


def report(rounds: list[dict[str, Cost]]) -> None:
    """Print the first round, and the medians of the others."""
    costs = defaultdict(list)
    for one in rounds:
        for name, cost in one.items():
            costs[name].append(cost)
    print(f"{'':<44} {'first wall':>10} {'wall':>7} {'CPU':>7}   (seconds; medians of the rest)")
    for name, (first, *others) in costs.items():
        wall, cpu = (statistics.median(values) for values in zip(*others, strict=True))
        print(f"{name:<44} {first.wall:10.2f} {wall:7.2f} {cpu:7.2f}")


def processor_seconds(home: Path) -> float:
    """Processor seconds of all ended children, and of the fork server with its children."""
    forking = fork_server_process(home)
    forked = sum(psutil.Process(forking).cpu_times()[:4]) if forking else 0.0
    return children_seconds() + forked


def children_seconds() -> float:
    """Processor seconds of all ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
