"""What a large home costs: many releases, models that serve, and hosts, which are simulated.

Each command also runs in an empty home: what is left is what grows. The hosts answer in a process
of their own, which is not counted. A reconcile finds nothing to do; the second of two is measured,
as in a served process, which has loaded everything.

    python -m benchmarks.home [--releases 10000] [--models 1000] [--hosts 5000]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.homes import Served, make_home
from moorage.adapters.ledger import Ledger
from moorage.adapters.system.settings import Settings
from moorage.inventory.fleet import Fleet
from tests.simulated_hosts import SimulatedHosts

REPOSITORY = Path(__file__).parents[1]
COMMANDS = ("status", "status --json", "history m0000", "show m0000")


def main() -> None:
    """Make the homes, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--releases", type=int, default=10_000)
    parser.add_argument("--models", type=int, default=1_000)
    parser.add_argument("--hosts", type=int, default=5_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, home_of(Path(name)):
        hosts = SimulatedHosts(given.hosts, 0)
        models = models_on(hosts, given.models, given.releases)
        with timed("make the home"):
            for one in make_home(Settings().ledger, models, given.hosts):
                hosts.workloads.setdefault(one.address, []).append(one)
        with hosts.in_own_process():
            measure_commands(Path(name) / "empty")
            measure_ledger()
            measure_reconcile(hosts.fleet)


def models_on(hosts: SimulatedHosts, models: int, releases: int) -> list[Served]:
    """Models that are spread evenly over the hosts."""
    places = [one * len(hosts.addresses) // models for one in range(models)]
    each = releases // models
    return [Served(f"m{one:04}", each, f"sim-{at}", hosts.url(at)) for one, at in enumerate(places)]


@contextmanager
def home_of(folder: Path) -> Iterator[None]:
    """Work in a home of its own, and with nobody else's Prefect server."""
    own = {"MOORAGE_HOME": str(folder / "home"), "PREFECT_HOME": str(folder / "prefect")}
    os.environ.update(own)
    yield


def measure_commands(empty: Path) -> None:
    """Commands as they are typed, in the large home and in an empty one."""
    for words in COMMANDS:
        for home in (os.environ["MOORAGE_HOME"], str(empty)):
            begin, before = time.perf_counter(), _children()
            subprocess.run(
                [sys.executable, "-m", "moorage.cli", *words.split()],
                env={**os.environ, "MOORAGE_HOME": home},
                cwd=REPOSITORY,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            where = "" if home == os.environ["MOORAGE_HOME"] else " (empty home)"
            _print(f"moorage {words}{where}", time.perf_counter() - begin, _children() - before)


def measure_ledger() -> None:
    """Queries that others are made of."""
    with closing(Ledger(Settings().ledger)) as ledger:
        own = ledger.releases
        queries: dict[str, Callable[[], Any]] = {
            "unfinished": own.unfinished,
            "latest": ledger.overviews.current,
            "of one model": lambda: own.of_model("m0000"),
            "claims": ledger.claims.all,
        }
        for name, query in queries.items():
            with timed(name):
                query()


def measure_reconcile(fleet: Fleet) -> None:
    """Twice, without a flow run."""
    from flows.dry_run import RunContext, plan_reconcile
    from tasks.journal import journal
    from tasks.policy import channel_scope
    from moorage.policy.request import Channel
    from datetime import UTC, datetime

    async def reconcile() -> None:
        with journal() as opened:
            found = await plan_reconcile(RunContext(opened, "", datetime.now(UTC)), fleet)
            print(found.message, len(found.result), found.result[:1])

    for words in ("reconcile, first", "reconcile, loaded"):
        with timed(words), channel_scope(Channel.CLI):
            asyncio.run(reconcile())


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Print what a block takes."""
    begin, before = time.perf_counter(), time.process_time()
    yield
    _print(name, time.perf_counter() - begin, time.process_time() - before)


def _print(name: str, wall: float, cpu: float) -> None:
    print(f"{name:<40} {wall:8.2f} s wall {cpu:8.2f} s CPU", flush=True)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
