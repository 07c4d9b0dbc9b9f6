"""What bringing weights costs: a deploy's steps beside `hf download`, and staging beside scp.

All take the files from this machine by `sendfile` (scp: from its own server), each in a process of
its own into an empty folder, one after the other in each round, so that a drifting machine hits
them alike. The first round is not counted: it compiles byte code, completes the configuration,
which a home keeps, and is the first to touch the machine's memory.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks import xet_storage
from benchmarks.file_hub import LARGE, write_listing
from benchmarks.lending_hosts import TOKEN, lending, ssh_server
from moorage.adapters.transfer.host_store import PROGRAM
from tests.hub.tiny import CONFIG, with_header

REPOSITORY = Path(__file__).parents[1]
MEMORY = Path("/dev/shm")
"""A folder in memory, so that no disk is measured."""

REPO = "bench/model"
MB = 1_000_000
BLOCK = 8 * MB
SHARDS = 64
SMALL_BYTES = 16_000
MOST_RSS = 200
"""Most MiB of memory that a download should take."""

LAUNCHER = """\
import os, sys, time
begin = time.perf_counter()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(child, 0)
wall = time.perf_counter() - begin
print(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A small parent: the peak of memory of a process is never below that of its parent."""


class Cost(NamedTuple):
    """The cost of one run: seconds, processor seconds, and peak bytes of memory."""

    wall: float
    cpu: float
    rss: float


@dataclass(frozen=True)
class Command:
    """A command, its own variables, and its standard input."""

    words: list[str]
    own: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


Tool = Callable[[Path], Command]
"""Returns the command that downloads the model into a folder."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--large", type=int, default=1000, help="MB of the only file")
    parser.add_argument("--shard", type=int, default=16, help=f"MB of each of {SHARDS} files")
    parser.add_argument("--small", type=int, default=1000, help="number of small files")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=MEMORY if MEMORY.is_dir() else None)
    chosen = parser.parse_args()
    cases: dict[str, Callable[[Path], None]] = {
        f"1 x {chosen.large} MB": lambda at: make_weights(at, 1, chosen.large * MB),
        f"{SHARDS} x {chosen.shard} MB": lambda at: make_weights(at, SHARDS, chosen.shard * MB),
        f"{chosen.small} small files": lambda at: make_small(at, chosen.small),
    }
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        (folder / "ssh").mkdir()
        with ssh_server(folder / "ssh") as ssh:
            for title, make in cases.items():
                measure_case(title, make, folder, ssh, chosen.rounds)


def measure_case(
    title: str, make: Callable[[Path], None], folder: Path, ssh: list[str], rounds: int
) -> None:
    """Make a model, download it with all tools, and report."""
    repository = folder / "hub" / REPO
    repository.mkdir(parents=True)
    make(repository)
    size = sum(path.stat().st_size for path in repository.iterdir())
    write_listing(repository)
    for path in repository.glob(f"*{LARGE}"):
        xet_storage.pack(path)
    with serving(folder / "hub") as hub, lending(repository) as lender:
        downloads = {"moorage": moorage(hub, folder / "home"), "hf": hf(hub, xet=False)}
        if find_spec("hf_xet"):
            downloads["hf, xet"] = hf(hub, xet=True)
        stagers = {"staging": staging(lender, repository)}
        if ssh:
            stagers["scp"] = scp(ssh, repository)
        if ssh and shutil.which("rsync"):
            stagers["rsync"] = rsync(ssh, repository)
        costs = measure(downloads, folder / "target", rounds)
        report(title, size, costs)
        report_aims(costs)
        report(title, size, measure(stagers, folder / "target", rounds))
    shutil.rmtree(folder / "hub")


def make_weights(repository: Path, files: int, size: int) -> None:
    """Write a model of `files` weight files of `size` bytes; all blocks differ."""
    (repository / "config.json").write_text(json.dumps(CONFIG))
    noise = random.Random(files).randbytes(BLOCK)
    for number in range(files):
        tensor = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}
        header = json.dumps({f"weight.{number}": tensor}).encode()
        with (repository / f"model-{number + 1:05}-of-{files:05}{LARGE}").open("wb") as target:
            target.write(with_header(header))
            for start in range(0, size, BLOCK):
                mark = b"%016d%016d" % (number, start)
                target.write((mark + noise[len(mark) :])[: size - start])


def make_small(repository: Path, files: int) -> None:
    """Write a small model with many small files."""
    make_weights(repository, 1, SMALL_BYTES)
    chance = random.Random(files)
    for number in range(files):
        (repository / f"{number:05}.txt").write_bytes(chance.randbytes(SMALL_BYTES))


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run a hub with the repositories in a folder; yields its address."""
    command = [sys.executable, "-m", "benchmarks.file_hub", str(folder)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as hub:
        assert hub.stdout
        try:
            yield hub.stdout.readline().strip()
        finally:
            hub.kill()


def moorage(url: str, home: Path) -> Tool:
    """The steps resolve and stage of a deploy, with a home that keeps everything but models."""

    def command(folder: Path) -> Command:
        home.mkdir(exist_ok=True)
        (home / "models").unlink(missing_ok=True)
        (home / "models").symlink_to(folder)
        own = {"MOORAGE_HOME": str(home), "MOORAGE_HUB_ENDPOINT": url}
        words = [sys.executable, "-m", "benchmarks.stage_model", f"hf://{REPO}"]
        return Command(words, {**own, "PYTHONPATH": str(REPOSITORY)})

    return command


def hf(url: str, *, xet: bool) -> Tool:
    """The hub's own client, which does not verify checksums over HTTP."""

    def command(folder: Path) -> Command:
        words = [str(Path(sys.executable).with_name("hf")), "download", REPO, "--quiet"]
        own = {"HF_ENDPOINT": url, "HF_HOME": str(folder / "home")}
        own |= {} if xet else {"HF_HUB_DISABLE_XET": "1"}
        return Command([*words, "--local-dir", str(folder / "model")], own)

    return command


def staging(url: str, repository: Path) -> Tool:
    """The program that a deploy runs on a host to copy the model from another host."""
    listing = json.loads(repository.with_suffix(".json").read_bytes())
    urls = {file["name"]: f"{url}/{file['name']}" for file in listing["files"]}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    mirror = {"name": "host", "near": True, "urls": urls, "headers": headers}
    job = {"folder": "model", "commit": listing["sha"], "workspace": "new.partial"}
    job |= {"files": listing["files"], "mirrors": [mirror], "manifest": "{}"}

    def command(folder: Path) -> Command:
        text = json.dumps({**job, "store": str(folder)}) + "\n"
        return Command([sys.executable, "-I", "-c", PROGRAM], text=text)

    return command


def scp(ssh: list[str], repository: Path) -> Tool:
    """A copy through SSH, which does not verify checksums of files."""
    return lambda folder: Command(["scp", "-qr", *ssh, f"127.0.0.1:{repository}", str(folder)])


def rsync(ssh: list[str], repository: Path) -> Tool:
    """A copy through SSH by rsync."""
    shell = " ".join(["ssh", *ssh])
    return lambda folder: Command(
        ["rsync", "-a", "--whole-file", "-e", shell, f"127.0.0.1:{repository}", str(folder)]
    )


def measure(tools: Mapping[str, Tool], target: Path, rounds: int) -> dict[str, list[Cost]]:
    """The costs of each tool by round, without the first round."""
    costs: dict[str, list[Cost]] = {name: [] for name in tools}
    for _ in range(rounds + 1):
        for name, tool in tools.items():
            target.mkdir()
            costs[name].append(run(tool(target)))
            shutil.rmtree(target)
    return {name: found[1:] for name, found in costs.items()}


def run(command: Command) -> Cost:
    """The cost of one command, including the children that it waited for."""
    base = {k: v for k, v in os.environ.items() if not k.startswith(("MOORAGE_", "HF_"))}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output:
        given.write(command.text.encode())
        given.seek(0)
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", LAUNCHER, *command.words],
            cwd=REPOSITORY,
            env={**base, **command.own},
            stdin=given,
            stdout=output,
            stderr=output,
            check=False,
        )
        output.seek(0)
        written = output.read().decode()
    if done.returncode or '"cause"' in written:
        sys.exit(f"{command.words[:4]}: {written[-3000:]}")
    return Cost(*map(float, written.splitlines()[-1].split()))


def report(title: str, size: int, costs: Mapping[str, list[Cost]]) -> None:
    """Print medians of each tool, and ratios of the first tool to it, paired by round."""
    first = next(iter(costs.values()))
    print(f"{title:<20} {'MB/s':>7} {'CPU-s':>7} {'MiB RSS':>8}   first / this: time, CPU-s, RSS")
    for name, rounds in costs.items():
        wall, cpu, rss = map(statistics.median, zip(*rounds, strict=True))
        ratios = [
            statistics.median(ours[at] / its[at] for ours, its in zip(first, rounds, strict=True))
            for at in range(len(Cost._fields))
        ]
        shown = "  ".join(f"{ratio:5.2f}" for ratio in ratios)
        print(f"  {name:<18} {size / MB / wall:7.0f} {cpu:7.2f} {rss / 2**20:8.0f}   {shown}")
    sys.stdout.flush()


def report_aims(costs: Mapping[str, list[Cost]]) -> None:
    """Print whether the first tool is as fast as the fastest other, and within `MOST_RSS`."""
    first, *others = (
        [statistics.median(values) for values in zip(*rounds, strict=True)]
        for rounds in costs.values()
    )
    ratio, rss = first[0] / min(wall for wall, _, _ in others), first[2] / 2**20
    print(f"  {ratio:.2f} of the faster one's time (aim: 1), {rss:.0f} MiB (aim: {MOST_RSS})")


if __name__ == "__main__":
    main()
