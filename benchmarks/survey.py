"""How long a survey of many hosts takes when some of them never answer.

The hosts are simulated (`tests/simulated_hosts.py`): daemons on loopback addresses that answer at
once, and dead ones that take connections and say nothing. So this is the time of the survey itself,
of its threads and of the time-outs; what a real host's probe container takes comes on top.

    python -m benchmarks.survey [--hosts 1 20 200 500] [--dead 0.1] [--json]
"""

from __future__ import annotations

import argparse
import json
import time

from moorage.adapters.hosts.remote_host import ASK_SECONDS
from moorage.adapters.hosts.survey import HOST_SECONDS, survey_hosts
from tests.simulated_hosts import SimulatedHosts

HOSTS = (1, 20, 200, 500)


def main() -> None:
    """Print a line for each number of hosts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--hosts", type=int, nargs="+", default=HOSTS)
    parser.add_argument("--dead", type=float, default=0.1, help="share that never answers")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    results = [
        measure(hosts, round(hosts * share)) for hosts in given.hosts for share in {0.0, given.dead}
    ]
    if given.json:
        print(json.dumps(results, indent=2))
        return
    print(f"one host's time-out: {HOST_SECONDS:g} s, of a silent daemon {ASK_SECONDS} s")
    print(f"{'hosts':>6} {'dead':>5} {'answering s':>12} {'all s':>7} {'processor s':>12}")
    for row in results:
        print(
            f"{row['hosts']:>6} {row['dead']:>5} {row['answering_s']:>12.2f} {row['all_s']:>7.2f}"
            f" {row['processor_s']:>12.2f}"
        )


def measure(hosts: int, dead: int) -> dict[str, float]:
    """Survey once.

    Args:
        hosts: Number of hosts.
        dead: Number of hosts that never answer.

    Returns:
        Seconds until all living hosts have answered, seconds until the survey ended, and seconds of
        processor time (including that of the simulated daemons).
    """
    done: list[float] = []
    with SimulatedHosts(hosts - dead, dead) as simulated:
        fleet = simulated.fleet
        began, used = time.monotonic(), time.process_time()
        seen = survey_hosts(fleet, HOST_SECONDS, lambda: done.append(time.monotonic() - began))
        took, used = time.monotonic() - began, time.process_time() - used
    assert sum(bool(host.unreachable) for host in seen) == dead
    return {
        "hosts": hosts,
        "dead": dead,
        "answering_s": done[hosts - dead - 1],
        "all_s": took,
        "processor_s": used,
    }


if __name__ == "__main__":
    main()
