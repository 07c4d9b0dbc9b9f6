"""The survey of all hosts of a fleet, in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from moorage.adapters.hosts.local_host import describe, survey_host
from moorage.adapters.sources.store import staged_models
from moorage.adapters.system.parallel import map_parallel
from moorage.inventory.access import parse_access
from moorage.inventory.claims import Claim
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.placement.avoiding import without_avoided

HOST_SECONDS = 20.0
"""Limit for one host, and so for the whole fleet."""


def survey_hosts(
    fleet: Fleet,
    seconds: float = HOST_SECONDS,
    on_done: Callable[[], None] = lambda: None,
) -> tuple[HostSnapshot, ...]:
    """The resources of every host and their use.

    Args:
        fleet: The hosts.
        seconds: Limit for one host. A host that does not answer in time is unreachable; its
            requests end by their own time-outs.
        on_done: Called after each host.
    """
    outcomes = map_parallel(lambda host: survey_host(host, fleet), fleet.hosts, seconds, on_done)
    pairs = zip(fleet.hosts, outcomes, strict=True)
    return tuple(_snapshot(host, outcome, seconds) for host, outcome in pairs)


def fleet_snapshot(
    hosts: Iterable[HostSnapshot], fleet: Fleet, claims: tuple[Claim, ...], models: Path
) -> FleetSnapshot:
    """The hosts, completed by the ledger, the fleet and the model store.

    Args:
        hosts: The surveyed hosts.
        fleet: Its engines and registries are used.
        claims: All claims of the ledger.
        models: The model store of this machine, which daemons on this machine share.
    """
    given = {"engines": fleet.engines, "registries": fleet.registries}
    here = {**given, "models": staged_models(models)}
    return FleetSnapshot(
        hosts=tuple(
            without_avoided(host, fleet)
            .with_claims(claims)
            .model_copy(update=given if parse_access(host.address).is_remote else here)
            for host in hosts
        )
    )


def _snapshot(host: Host, outcome: HostSnapshot | Exception, seconds: float) -> HostSnapshot:
    if isinstance(outcome, HostSnapshot):
        return outcome
    late = isinstance(outcome, TimeoutError) and not outcome.args
    why = f"it did not answer within {seconds:g} s" if late else f"{outcome!r}"
    return describe(host).model_copy(update={"unreachable": why})
