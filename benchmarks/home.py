"""What grows with a home: many releases, models that serve, and hosts, which are simulated.

Each command runs in a fork, as where the server of a home runs, and in a process of its own; also
in an empty home: the difference is what grows. The hosts answer in a process of their own, which is
not counted. Nothing is there to repair. What is measured in this process runs twice: the second
time everything is loaded, as in a process that serves. Aims are for a machine without other work.

    python -m benchmarks.home [--releases 10000] [--models 1000] [--hosts 5000]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks.commands import MOORAGE, REPOSITORY, processor_seconds
from benchmarks.hollow_model import write_weights
from benchmarks.homes import Served, make_home
from flows.dry_run import RunContext, plan_reconcile
from moorage.adapters.files.safe_files import provide_private_folder
from moorage.adapters.ledger import Ledger
from moorage.adapters.prefect.home_server import (
    CLIENT_DEFAULTS,
    find_login,
    kept_server,
    stop_server,
)
from moorage.adapters.system.settings import Settings
from moorage.cli.fork_server import fork_server_process, start_fork_server, stop_fork_server
from moorage.cli.forked import FOLDER, SOCKET, SWITCH
from moorage.inventory.fleet import Fleet
from moorage.policy.request import Channel
from moorage.releases.states import SERVING
from tasks.journal import journal
from tasks.policy import channel_scope
from tests.simulated_hosts import SimulatedHosts

COMMANDS = ("status", "status --json", "history m0000", "show m0000")
EMPTY = ", empty home"
IDLE_SECONDS = 300

AIMS = {
    "moorage memory": "2 CPU-s",
    "moorage status, forked": "0.5 s",
    "moorage history m0000, forked": "0.2 s",
    "reconcile, again": "10 CPU-s",
    "flow run of a reconcile, small home, again": "0.2 CPU-s",
}
"""Aims by measurement."""


def main() -> None:
    """Make the homes, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--releases", type=int, default=10_000)
    parser.add_argument("--models", type=int, default=1_000)
    parser.add_argument("--hosts", type=int, default=5_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["PREFECT_HOME"] = str(folder / "prefect")
        os.environ["MOORAGE_PROBE_SECONDS"] = "86400"  # the simulated hosts have no engines
        with home(folder / "empty"):
            measure_memory(folder)
        with home(folder / "large"):
            measure_large(given.hosts, given.models, given.releases, folder / "empty")
        with home(folder / "small"):
            measure_flow_run()


def measure_memory(folder: Path) -> None:
    """Measure `moorage memory` for a model of 91,991 tensors, the first and the second time."""
    files = [f"model-{number:05}-of-00163.safetensors" for number in range(1, 164)]
    write_weights("deepseek-v3", folder / "model", files)
    (folder / "large.yaml").write_text(f"{{name: large, source: 'file://{folder}/model'}}")
    for note in (", first", ""):
        measure_command("memory", str(folder / "large.yaml"), note=note)


def measure_large(hosts: int, models: int, releases: int, empty: Path) -> None:
    """Measure commands, queries and a reconcile in a home with many models and hosts."""
    simulated = SimulatedHosts(hosts, 0)
    places = [one * hosts // models for one in range(models)]
    served = [
        Served(f"m{one:04}", releases // models, f"sim-{at}", simulated.url(at))
        for one, at in enumerate(places)
    ]
    with timed("the home itself"):
        for one in make_home(Settings().ledger, served, hosts):
            simulated.workloads.setdefault(one.address, []).append(one)
    with simulated.in_own_process():
        measure_commands()
        with home(empty):
            measure_commands(EMPTY)
        measure_queries()
        fleet = simulated.fleet
        with channel_scope(Channel.CLI):
            twice("reconcile", lambda: asyncio.run(reconcile(fleet)))


def measure_commands(note: str = "") -> None:
    """Measure each command in a fork and in a separate process."""
    with forking(Settings().root):
        for words in COMMANDS:
            measure_command(*words.split(), note=f"{note}, forked", forked=True)
            measure_command(*words.split(), note=note)


def measure_queries() -> None:
    """Measure the ledger's queries of commands and flows."""
    with closing(Ledger(Settings().ledger)) as ledger:
        own = ledger.releases
        queries: dict[str, Callable[[], object]] = {
            "what is current of every model": ledger.overviews.current,
            "what is unfinished": own.unfinished,
            "what serves, with records": lambda: own.in_states(SERVING),
            "the releases of one model": lambda: own.of_model("m0000"),
        }
        for what, query in queries.items():
            twice(what, query)


async def reconcile(fleet: Fleet) -> None:
    """Observe all hosts and decide, like a reconcile that finds nothing to do."""
    with journal() as opened:
        found = await plan_reconcile(RunContext(opened, "", datetime.now(UTC)), fleet)
    assert not found.result, f"{found.message}: {found.result[0].action.reason}"


def measure_flow_run() -> None:
    """Measure the whole flow run of a reconcile, in a home without models, on its own server."""
    os.environ.update(CLIENT_DEFAULTS)
    # Prefect reads these variables during its import.
    from prefect.logging.handlers import APILogHandler  # noqa: PLC0415

    from flows.reconcile_fleet import reconcile_fleet  # noqa: PLC0415
    from moorage.adapters.prefect.api_login import use_login  # noqa: PLC0415
    from moorage.adapters.prefect.new_database import provide_database  # noqa: PLC0415

    provide_database()
    root = Settings().root
    server = kept_server(root, IDLE_SECONDS)
    try:
        use_login(find_login(root) or "", {"PREFECT_API_URL": server.url})
        with channel_scope(Channel.CLI):
            run = partial(reconcile_fleet, return_state=True)
            twice("flow run of a reconcile, small home", lambda: asyncio.run(run()))
        APILogHandler().flush()
    finally:
        stop_server(root)


@contextmanager
def home(folder: Path) -> Iterator[None]:
    """Use a separate home."""
    before = os.environ.get("MOORAGE_HOME", "")
    os.environ["MOORAGE_HOME"] = str(folder)
    yield
    os.environ["MOORAGE_HOME"] = before


@contextmanager
def forking(root: Path) -> Iterator[None]:
    """Run the fork server for commands of a home."""
    provide_private_folder(root)
    start_fork_server(root, _environment(), IDLE_SECONDS)
    while not (root / FOLDER / SOCKET).exists():
        time.sleep(0.1)
    try:
        yield
    finally:
        process = fork_server_process(root)
        stop_fork_server(root)
        os.waitpid(process, 0)  # else its time would count for the next command


def measure_command(*words: str, note: str = "", forked: bool = False) -> None:
    """Measure a command as a user runs it."""
    root = Settings().root
    begin, before = time.perf_counter(), processor_seconds(root)
    subprocess.run(
        [*MOORAGE, *words],
        env={**_environment(), SWITCH: str(int(forked))},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=EMPTY not in note,  # `m0000` is unknown there
    )
    shown = " ".join(word for word in words if not word.startswith("/"))
    wall = time.perf_counter() - begin
    _print(f"moorage {shown}{note}", wall, processor_seconds(root) - before)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def twice(what: str, work: Callable[[], object]) -> None:
    """Measure a call twice: the first time, and with everything loaded."""
    for note in ("first", "again"):
        with timed(f"{what}, {note}"):
            work()


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print the wall and processor time of a block."""
    begin, before = time.perf_counter(), time.process_time()
    yield
    _print(what, time.perf_counter() - begin, time.process_time() - before)


def _print(what: str, wall: float, cpu: float) -> None:
    aim = f"   (aim: {AIMS[what]})" if what in AIMS else ""
    print(f"{what:<48} {wall:7.2f} s {cpu:7.2f} CPU-s{aim}", flush=True)


if __name__ == "__main__":
    main()
