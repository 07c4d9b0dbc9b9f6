"""What bringing weights costs: the steps resolve and stage of a deploy beside `hf download`.

Both ask the same hub on loopback, which sends by `sendfile`. Each runs in a process of its own with
an empty home, one after the other in each round, so that a drifting machine hits them alike.

    python -m benchmarks.downloads [--large MB] [--shard MB] [--small N] [--rounds N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.file_hub import write_listing
from tests.hub.tiny import CONFIG, with_header

REPOSITORY = Path(__file__).parents[1]
MEMORY = Path("/dev/shm")
"""Where no disk is measured."""

MB = 1_000_000
BLOCK = 8 * MB
SHARDS = 64
SMALL_BYTES = 16_000


class Cost(NamedTuple):
    """What one download costs: seconds, processor seconds, and bytes of memory at its peak."""

    wall: float
    cpu: float
    rss: float


Tool = Callable[[str, str, Path], tuple[list[str], dict[str, str]]]
"""The command, and the variables of its own, for a hub's address, a repository and a folder."""


def moorage(url: str, repo: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """As a deploy does it."""
    own = {"MOORAGE_HOME": str(folder), "MOORAGE_HUB_ENDPOINT": url, "PYTHONPATH": str(REPOSITORY)}
    return [sys.executable, "-m", "benchmarks.stage_model", f"hf://{repo}"], own


def hf(url: str, repo: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """The hub's own client over HTTP."""
    command = [str(Path(sys.executable).with_name("hf")), "download", repo]
    own = {"HF_ENDPOINT": url, "HF_HOME": str(folder / "home"), "HF_HUB_DISABLE_XET": "1"}
    return [*command, "--local-dir", str(folder / "model"), "--quiet"], own


TOOLS: dict[str, Tool] = {"moorage": moorage, "hf download": hf}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--large", type=int, default=2000, help="MB of the only file")
    parser.add_argument("--shard", type=int, default=64, help=f"MB of each of {SHARDS} files")
    parser.add_argument("--small", type=int, default=2000, help="number of small files")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=MEMORY if MEMORY.is_dir() else None)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        cases = {
            f"1 x {chosen.large} MB": lambda at: make_weights(at, 1, chosen.large * MB),
            f"{SHARDS} x {chosen.shard} MB": lambda at: make_weights(at, SHARDS, chosen.shard * MB),
            f"{chosen.small} small files": lambda at: make_small(at, chosen.small),
        }
        for title, make in cases.items():
            repository = folder / "hub" / "bench" / "model"
            repository.mkdir(parents=True)
            make(repository)
            report(title, repository, measure(folder, chosen.rounds))
            shutil.rmtree(folder / "hub")


def make_weights(repository: Path, files: int, size: int) -> None:
    """A model of so many weight files of so many bytes; no two of their blocks are the same."""
    (repository / "config.json").write_text(json.dumps(CONFIG))
    noise = random.Random(files).randbytes(BLOCK)
    for number in range(files):
        tensor = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}
        header = json.dumps({f"weight.{number}": tensor}).encode()
        name = f"model-{number + 1:05}-of-{files:05}.safetensors"
        with (repository / name).open("wb") as target:
            target.write(with_header(header))
            for start in range(0, size, BLOCK):
                mark = b"%016d%016d" % (number, start)
                target.write((mark + noise[len(mark) :])[: size - start])
    write_listing(repository)


def make_small(repository: Path, files: int) -> None:
    """A small model with many small files."""
    make_weights(repository, 1, SMALL_BYTES)
    chance = random.Random(files)
    for number in range(files):
        (repository / f"{number:05}.txt").write_bytes(chance.randbytes(SMALL_BYTES))
    write_listing(repository)


def measure(folder: Path, rounds: int) -> dict[str, list[Cost]]:
    """What each tool costs, round by round."""
    costs: dict[str, list[Cost]] = {name: [] for name in TOOLS}
    with serving(folder / "hub") as url:
        for _ in range(rounds):
            for name, tool in TOOLS.items():
                target = folder / "target"
                target.mkdir()
                costs[name].append(run(*tool(url, "bench/model", target)))
                shutil.rmtree(target)
    return costs


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A hub of the repositories in a folder; gives its address."""
    command = [sys.executable, "-m", "benchmarks.file_hub", str(folder)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as hub:
        try:
            assert hub.stdout
            yield f"http://127.0.0.1:{int(hub.stdout.readline())}"
        finally:
            hub.kill()


def run(command: list[str], own: dict[str, str]) -> Cost:
    """What one command costs, with the children that it waited for."""
    base = {k: v for k, v in os.environ.items() if not k.startswith(("MOORAGE_", "HF_"))}
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            command, cwd=REPOSITORY, env={**base, **own}, stdout=output, stderr=output
        )
        _, status, used = os.wait4(child.pid, 0)
        if status:
            output.seek(0)
            sys.exit(f"{command}: {output.read().decode()[-3000:]}")
    wall = time.perf_counter() - begin
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def report(title: str, repository: Path, costs: dict[str, list[Cost]]) -> None:
    """Medians of each tool; ratios are those of the first tool to it, paired by round."""
    size = sum(path.stat().st_size for path in repository.iterdir())
    first = next(iter(costs.values()))
    print(f"{title}\n{'':<16} {'MB/s':>7} {'CPU-s':>7} {'MiB RSS':>8}   of its time, CPU, RSS")
    for name, rounds in costs.items():
        wall, cpu, rss = map(statistics.median, zip(*rounds, strict=True))
        ratios = [
            statistics.median(ours[at] / its[at] for ours, its in zip(first, rounds, strict=True))
            for at in range(len(Cost._fields))
        ]
        shown = "  ".join(f"{ratio:5.2f}" for ratio in ratios)
        print(f"{name:<16} {size / MB / wall:7.0f} {cpu:7.2f} {rss / 2**20:8.0f}   {shown}")


if __name__ == "__main__":
    main()
