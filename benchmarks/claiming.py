"""What a claim costs on large fleets: from the ledger's rows and surveyed hosts to the commit.

The four parts are those of a deploy, in process and the collector paused as the tasks do it: the
claims of all releases are read, hosts and claims become a snapshot, the model is placed, and its
claims are committed. Shown is the processor time of each in milliseconds, the least of several
runs: what the operating system spends on the ledger's file counts too.

`--peer PYTHON` also measures GPUStack's selector and scorer on the same fleet, beside the part
`place`, in a Python that has GPUStack 2.3 (`gpustack_selector.py`); its time grows with hosts times
claims.

    python -m benchmarks.claiming [--hosts 1000 5000] [--releases 0 1] [--peer PYTHON] [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import TypeVar

from benchmarks.fleets import WEIGHTS, a_fleet, a_request
from moorage.adapters.hosts.survey import fleet_snapshot
from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.claims import insert_claims, record_machines
from moorage.adapters.ledger.database import gate, open_database
from moorage.adapters.system.process import paused_collector
from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.placement.propose import place
from moorage.spec import ModelSpec

HOSTS = (1_000, 5_000, 20_000)
RELEASES = (0, 1)
REPETITIONS = 5
CASE = "one accelerator"
PARTS = ("claims", "snapshot", "place", "commit")

T = TypeVar("T")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=HOSTS, help="sizes of the fleet")
    parser.add_argument("--releases", type=int, nargs="+", default=RELEASES, help="on each host")
    parser.add_argument("--peer", default="", help="a Python that has GPUStack")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    sizes = product(options.hosts, options.releases)
    results = [measure(*size, options.peer) for size in sizes]
    if options.json:
        print(json.dumps(results, indent=2))
        return
    columns = ("hosts", "rows", *PARTS, "all", *(("peer",) if options.peer else ()))
    print("".join(f"{name:>10}" for name in columns))
    for result in results:
        print("".join(f"{result[name]:>10,.0f}" for name in columns))


def measure(hosts: int, releases: int, peer: str = "") -> dict[str, float]:
    """Milliseconds of processor time by part, on `hosts` hosts with `releases` releases each."""
    fleet = a_fleet(hosts, releases)
    rows = sum(len(host.claims) for host in fleet.hosts)
    surveyed = tuple(host.model_copy(update={"claims": ()}) for host in fleet.hosts)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/ledger.db"
        with closing(Ledger(url)) as ledger:
            _fill(ledger, url, fleet)
            runs = [_run(ledger, surveyed, Path(folder, str(at))) for at in range(REPETITIONS)]
    parts = {name: min(run[name] for run in runs) for name in PARTS}
    parts |= {"all": min(sum(run.values()) for run in runs)}
    if peer:
        parts["peer"] = _measure_peer(peer, fleet)
    return {"hosts": hosts, "rows": rows, **parts}


def _measure_peer(python: str, fleet: FleetSnapshot) -> float:
    """Milliseconds of processor time in which GPUStack chooses a host for the same model."""
    needed = WEIGHTS[CASE] * GIB * 12 // 10 + 2 * GIB  # its estimate: 1.2 times the weights + 2 GiB
    hosts = [
        {
            "ram": host.ram_total,
            "memory": [item.memory_total for item in host.accelerators],
            "held": {
                one.index: one.amount for one in host.claims if one.resource is Resource.ACCELERATOR
            },
        }
        for host in fleet.hosts
    ]
    question = json.dumps({"bytes": needed, "hosts": hosts})
    command = [python, str(Path(__file__).with_name("gpustack_selector.py"))]
    answer = subprocess.run(command, input=question, capture_output=True, text=True, check=True)
    return float(min(json.loads(answer.stdout.splitlines()[-1])["ms"]))


def _fill(ledger: Ledger, url: str, fleet: FleetSnapshot) -> None:
    """Write the claims of the fleet, without checking that each of them fits."""
    claims: dict[str, list[Claim]] = {}
    for claim in (claim for host in fleet.hosts for claim in host.claims):
        claims.setdefault(claim.release, []).append(claim)
    begun = {release: _begin(ledger, release.rpartition(".")[0]) for release in claims}
    database = open_database(url)
    with gate(database) as connection:
        record_machines(connection, fleet, {host.name for host in fleet.hosts})
        for release, own in claims.items():
            insert_claims(connection, begun[release], own)
    database.dispose()


def _run(ledger: Ledger, surveyed: tuple[HostSnapshot, ...], models: Path) -> dict[str, float]:
    """Milliseconds of processor time of each part of one claim; the claim is freed afterwards."""
    spent: dict[str, float] = {}

    def timed(part: str, work: Callable[[], T]) -> T:
        begin = time.process_time()
        result = work()
        spent[part] = (time.process_time() - begin) * 1e3
        return result

    models.mkdir()
    release, request = _begin(ledger, "bench"), a_request(CASE, "spread")
    with paused_collector():
        claims = timed("claims", ledger.claims.all)
        fleet = timed("snapshot", lambda: fleet_snapshot(surveyed, Fleet(), claims, models))
        placement = timed("place", lambda: place(request, fleet, Origin.DERIVED, "measured"))
        timed("commit", lambda: ledger.claims.commit(release, placement.claims, fleet))
    ledger.claims.hand_back(release, "", ())
    return spent


def _begin(ledger: Ledger, model: str) -> str:
    spec = ModelSpec.model_validate({"name": model, "source": "hf://org/bench"})
    return ledger.releases.begin(spec, "", "")


if __name__ == "__main__":
    main()
