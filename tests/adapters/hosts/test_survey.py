"""A fleet is looked at in the time of its slowest host, and dead ones hold up nobody."""

from __future__ import annotations

import threading
import time

import pytest

from moorage.adapters.hosts import remote_host
from moorage.adapters.hosts.survey import survey_hosts
from moorage.adapters.system.parallel import map_parallel
from tests.simulated_hosts import SimulatedHosts

GENEROUS = 30.0
"""The machine may be busy; `benchmarks/survey.py` tells what it really takes."""


def test_200_hosts_with_20_dead_ones_are_seen_within_one_hosts_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_host, "ASK_SECONDS", 5)
    done: list[float] = []
    with SimulatedHosts(180, 20) as simulated:
        began = time.monotonic()
        seen = survey_hosts(
            simulated.fleet, GENEROUS, lambda: done.append(time.monotonic() - began)
        )
        assert time.monotonic() - began < GENEROUS + 2
    dead = {at for at, host in enumerate(seen) if host.unreachable}
    assert dead == simulated.dead
    assert [host.name for host in seen] == [f"sim-{at}" for at in range(200)]
    assert all(len(host.accelerators) == 8 for at, host in enumerate(seen) if at not in dead)
    assert all("timed out" in seen[at].unreachable for at in dead)
    assert len(done) == 200


def test_a_host_that_takes_too_long_is_unreachable_with_the_time_it_had() -> None:
    with SimulatedHosts(1, 1) as simulated:
        (gone, seen) = survey_hosts(simulated.fleet, 1.0)
    assert gone.unreachable == "it did not answer within 1 s"
    assert (gone.name, gone.bind) == ("sim-0", "10.0.0.1")
    assert (seen.unreachable, seen.accelerators[0].uuid) == ("", "GPU-1-0")


def test_what_has_not_ended_in_time_is_a_time_out_and_errors_stay_with_their_item() -> None:
    forever = threading.Event()

    def work(item: str) -> str:
        if item == "slow":
            forever.wait()
        if item == "wrong":
            raise ValueError(item)
        return item.upper()

    first, slow, wrong = map_parallel(work, ("fine", "slow", "wrong"), 0.5)
    forever.set()
    assert first == "FINE"
    assert isinstance(slow, TimeoutError)
    assert isinstance(wrong, ValueError)
