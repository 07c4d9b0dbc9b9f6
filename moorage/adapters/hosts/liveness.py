"""Whether the workloads of releases are alive: all their hosts are queried in parallel."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moorage.adapters.hosts.observation import Observation
from moorage.adapters.hosts.runtime import observe_workloads
from moorage.adapters.system.parallel import map_parallel
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.engines.workload import Workload
from moorage.operations.reconcile.observed_workload import Place, place_of
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState

OBSERVE_SECONDS = 20.0
"""Limit for all hosts together. Hosts that do not answer in this time are unreachable."""

Seen = Observation | Failure


class Liveness(NamedTuple):
    """Whether all workloads of a release are alive, and the state of each in words.

    `ended` tells whether a workload is known to have ended. An unreachable workload may be alive.
    """

    alive: bool
    detail: str
    ended: bool = False


def liveness_of(rows: Sequence[ReleaseRow], settings: Settings) -> list[Liveness]:
    """Query the actual state of each release's workloads."""
    seen = _observe([one for row in rows for one in row.workloads], settings)
    return [_liveness(row, seen) for row in rows]


def _observe(workloads: Sequence[Workload], settings: Settings) -> dict[str, Seen]:
    """The state of each workload by name, or why it is unreachable."""
    places = defaultdict[Place, list[Workload]](list)
    for one in workloads:
        places[place_of(one)].append(one)

    def observe(there: list[Workload]) -> list[Observation]:
        return observe_workloads(there, settings)

    answers = map_parallel(observe, list(places.values()), OBSERVE_SECONDS)
    seen: dict[str, Seen] = {}
    for there, answer in zip(places.values(), answers, strict=True):
        if isinstance(answer, Exception):
            seen |= dict.fromkeys((one.name for one in there), _failure(answer))
        else:
            seen |= zip((one.name for one in there), answer, strict=True)
    return seen


def _failure(error: Exception) -> Failure:
    if isinstance(error, Failure):
        return error
    if not isinstance(error, TimeoutError):
        raise error
    detail = f"it did not answer within {OBSERVE_SECONDS:g} s"
    return Failure(Cause.RUNTIME_UNAVAILABLE, detail)


def _liveness(row: ReleaseRow, observed: Mapping[str, Seen]) -> Liveness:
    if not row.workloads:
        return Liveness(False, row.cause or row.state)
    alive, ended, states = row.state != ReleaseState.ERROR, False, []
    for workload in row.workloads:
        seen = observed[workload.name]
        if isinstance(seen, Failure):
            which = f"{workload.role} on {workload.host}: " if len(row.workloads) > 1 else ""
            alive, detail = False, f"{which}{seen}"
        else:
            alive, ended = alive and seen.running, ended or not seen.running
            part = "" if workload.serves else f"{workload.role} on {workload.host}: "
            # An engine that has exited is dead, whatever its exit code: vLLM dies with 0.
            detail = part + (seen.detail if seen.running else f"dead: {seen.with_exit_code}")
        left = row.state == ReleaseState.ERROR
        states.append(f"left behind on {workload.host}: {detail}" if left else detail)
    return Liveness(alive, "; ".join(states), ended)
