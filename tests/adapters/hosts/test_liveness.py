"""Whether what the ledger says still runs, asked of all hosts at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.adapters.hosts import liveness
from moorage.adapters.hosts.liveness import Liveness, liveness_of
from moorage.adapters.system.settings import Settings
from moorage.engines.workload import Workload
from moorage.placement.role import Role
from moorage.releases.states import ReleaseState
from moorage.spec import RuntimeName
from tests.builders import a_row, a_workload
from tests.simulated_hosts import SimulatedHosts

RUNS = "the container is running"


def workload(
    hosts: SimulatedHosts, at: int, name: str = "leader", role: Role = Role.LEADER
) -> Workload:
    where = {"host": f"sim-{at}", "address": hosts.url(at), "runtime": RuntimeName.DOCKER}
    return a_workload(f"moorage-{name}", role=role, **where)


def test_a_host_that_says_nothing_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(liveness, "OBSERVE_SECONDS", 2.0)
    hosts = SimulatedHosts(2, 1)  # the first says nothing
    serves, follows = workload(hosts, 1), workload(hosts, 2, "follower", Role.FOLLOWER)
    hosts.workloads = {one.address: [one] for one in (serves, follows)}
    rows = [
        a_row(workloads=(serves, follows)),
        a_row(workloads=(workload(hosts, 0, "silent"),)),
        a_row(workloads=(serves, workload(hosts, 0, "part", Role.FOLLOWER))),
        a_row(workloads=(workload(hosts, 1, "gone"),)),
        a_row(workloads=(serves,), state=ReleaseState.ERROR),
        a_row(workloads=(), state=ReleaseState.ERROR, cause="no-fit"),
    ]
    with hosts:
        found = liveness_of(rows, Settings(home=tmp_path))
    whole, silent, half, gone, left, over = found
    assert whole == Liveness(True, f"{RUNS}; follower on sim-2: {RUNS}")
    assert (silent.alive, silent.ended) == (False, False)
    assert "did not answer within 2 s" in silent.detail
    assert half.detail.startswith(f"{RUNS}; follower on sim-0: ")
    assert gone == Liveness(False, "dead: the container is gone", ended=True)
    assert left == Liveness(False, f"left behind on sim-1: {RUNS}")
    assert over == Liveness(False, "no-fit")
