"""Looking at all hosts of a fleet at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from moorage.adapters.hosts.local_host import describe, survey_host
from moorage.adapters.sources.store import staged_models
from moorage.adapters.system.parallel import all_at_once
from moorage.inventory.access import parse_access
from moorage.inventory.claims import Claim
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.placement.avoiding import without_avoided

HOST_SECONDS = 20.0
"""How long one host may take; so long takes the whole fleet at most."""


def survey_hosts(
    fleet: Fleet,
    seconds: float = HOST_SECONDS,
    on_done: Callable[[], None] = lambda: None,
) -> tuple[HostSnapshot, ...]:
    """What is there and really in use on every host.

    Args:
        fleet: The hosts.
        seconds: How long one may take. One that does not answer by then is unreachable and holds
            up nobody; what was begun with it ends by its own time-outs.
        on_done: Told whenever one has been looked at.
    """
    outcomes = all_at_once(lambda host: survey_host(host, fleet), fleet.hosts, seconds, on_done)
    pairs = zip(fleet.hosts, outcomes, strict=True)
    return tuple(_snapshot(host, outcome, seconds) for host, outcome in pairs)


def whole_snapshot(
    hosts: Iterable[HostSnapshot], fleet: Fleet, claims: tuple[Claim, ...], models: Path
) -> FleetSnapshot:
    """The hosts with what others know about them.

    Args:
        hosts: As they were looked at.
        fleet: What it says about engines and registries.
        claims: All that the ledger has reserved.
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
