"""How long placement takes on fleets of 10 to 20,000 hosts, and how that grows.

Each case is placed in process, the collector paused as the task does it, several times: best and
median of the wall time (which other processes lengthen) and best of the processor time, from which
the growth is taken. The snapshot is built before, and timed apart; the peak of memory is taken in a
run of its own.

    python -m benchmarks.placement [--hosts 10 100 1000 5000 20000] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise, product
from math import log
from typing import TypeVar

from benchmarks.fleets import ACCELERATORS, WEIGHTS, a_fleet, a_request
from moorage.adapters.system.process import paused_collector
from moorage.common.values import Origin
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.explanation import explain
from moorage.placement.placement import Placement
from moorage.placement.propose import place
from moorage.placement.request import Request

HOSTS = (10, 100, 1_000, 5_000, 20_000)
RELEASES = (0, 1, 8)
STRATEGIES = ("spread", "binpack")
REPETITIONS, QUICK_REPETITIONS = 5, 3
MIB = 1 << 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Result:
    """One case on one fleet; times in milliseconds, memory in MiB.

    Attributes:
        case: A case of `WEIGHTS`.
        strategy: `spread` or `binpack`.
        releases: Running releases on each host.
        hosts: Hosts of the fleet.
        best: Shortest wall time.
        median: Median wall time.
        cpu: Shortest processor time.
        words: Shortest wall time to explain why hosts were refused.
        peak: Peak memory in addition to the snapshot.
        seats: Number of placed containers.
        refused: Number of refused hosts.
    """

    case: str
    strategy: str
    releases: int
    hosts: int
    best: float
    median: float
    cpu: float
    words: float
    peak: float
    seats: int
    refused: int


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=HOSTS, help="sizes of the fleet")
    parser.add_argument("--quick", action="store_true", help="up to 1,000 hosts, 3 repetitions")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    sizes = [size for size in options.hosts if not options.quick or size <= 1_000]
    repetitions = QUICK_REPETITIONS if options.quick else REPETITIONS
    before = os.getloadavg()
    builds: list[dict[str, float]] = []
    results = list(measure_all(sizes, repetitions, builds))
    machine: dict[str, object] = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load before": before,
        "load after": os.getloadavg(),
        "repetitions": repetitions,
    }
    if options.json:
        shown = {"machine": machine, "snapshots": builds, "results": [asdict(r) for r in results]}
        json.dump({**shown, "growth": growth(results)}, sys.stdout, indent=2)
        print()
    else:
        report(machine, builds, results)


def measure_all(
    sizes: list[int], repetitions: int, builds: list[dict[str, float]]
) -> Iterator[Result]:
    """Every case on every fleet, one fleet at a time; `builds` gets the snapshots' times."""
    for hosts, releases in product(sizes, RELEASES):
        gc.collect()
        begin = time.perf_counter()
        fleet = a_fleet(hosts, releases)
        took = (time.perf_counter() - begin) * 1e3
        builds.append({"hosts": hosts, "releases": releases, "ms": took})
        for case, strategy in product(WEIGHTS, STRATEGIES):
            yield measure(fleet, releases, case, strategy, repetitions)


def measure(
    fleet: FleetSnapshot, releases: int, case: str, strategy: str, repetitions: int
) -> Result:
    """Measure one case on one fleet. Each repetition has a new request without cached values."""

    def prepare() -> Request:
        return a_request(case, strategy)

    def ask(request: Request) -> Placement:
        with paused_collector():  # as in the task
            return place(request, fleet, Origin.DERIVED, "measured")

    walls, processor = _times(prepare, ask, repetitions)
    placement = ask(prepare())
    words, _ = _times(lambda: placement.verdicts, explain, repetitions)
    return Result(
        case=case,
        strategy=strategy,
        releases=releases,
        hosts=len(fleet.hosts),
        best=min(walls),
        median=statistics.median(walls),
        cpu=min(processor),
        words=min(words),
        peak=_peak(prepare, ask),
        seats=len(placement.seats),
        refused=sum(1 for verdict in placement.verdicts if verdict.refusal),
    )


def growth(results: list[Result]) -> dict[str, list[float]]:
    """Growth exponents by case, from each size to the next: 1 is linear, 2 is quadratic."""
    curves: dict[str, list[Result]] = {}
    for result in results:
        curves.setdefault(_name(result), []).append(result)
    return {
        name: [
            round(log(large.cpu / small.cpu) / log(large.hosts / small.hosts), 2)
            for small, large in pairwise(curve)
        ]
        for name, curve in curves.items()
    }


def report(
    machine: dict[str, object], builds: list[dict[str, float]], results: list[Result]
) -> None:
    """Print the tables."""
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    print(f"\nsnapshots of hosts with {ACCELERATORS} accelerators, built once")
    for build in builds:
        print(f"  {build['hosts']:>6,} hosts x {build['releases']} releases {build['ms']:9.1f} ms")
    head = ("best ms", "median", "cpu", "words", "peak MiB", "seats", "refused")
    print(
        f"\n{'case, strategy, releases a host':<40} {'hosts':>6} "
        + "".join(f"{h:>9}" for h in head)
    )
    for one in sorted(results, key=lambda r: (_name(r), r.hosts)):
        times = "".join(f"{v:9.2f}" for v in (one.best, one.median, one.cpu, one.words, one.peak))
        print(f"{_name(one):<40} {one.hosts:>6,} {times}{one.seats:>9}{one.refused:>9,}")
    print("\ngrowth exponents from each size to the next (1 = linear)")
    for name, exponents in growth(results).items():
        print(f"  {name:<40} " + "  ".join(f"{exponent:.2f}" for exponent in exponents))


def _times(
    prepare: Callable[[], T], ask: Callable[[T], object], repetitions: int
) -> tuple[list[float], list[float]]:
    """Milliseconds of wall and of processor time of each repetition."""
    walls, processor = [], []
    for _ in range(repetitions):
        question = prepare()
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        answer = ask(question)
        walls.append((time.perf_counter() - wall) * 1e3)
        processor.append((time.process_time() - cpu) * 1e3)
        del answer
    return walls, processor


def _peak(prepare: Callable[[], T], ask: Callable[[T], object]) -> float:
    question = prepare()
    gc.collect()
    tracemalloc.start()
    try:
        ask(question)
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


def _name(result: Result) -> str:
    return f"{result.case}, {result.strategy}, {result.releases}"


if __name__ == "__main__":
    main()
