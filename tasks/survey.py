"""Step survey: the fleet as it is now."""

from __future__ import annotations

import asyncio

from prefect import task

from moorage.access import parse_access
from moorage.adapters.hosts import survey_host
from moorage.adapters.sources.store import staged_models
from moorage.fleet import Fleet, Host
from moorage.placement.snapshot import FleetSnapshot, HostSnapshot
from moorage.units import human_bytes
from tasks.context import in_thread, ledger, settings
from tasks.journal import step
from tasks.retries import RETRIED

HOST_SECONDS = 20.0
"""How long one host may take; all are looked at at once."""


@task(name="survey", task_run_name="survey the fleet", timeout_seconds=120, **RETRIED)
async def survey(fleet: Fleet) -> FleetSnapshot:
    """Look at every host, and at what the ledger has reserved there."""
    with step("survey") as note:
        snapshot = await take_snapshot(fleet)
        reachable = [host for host in snapshot.hosts if not host.unreachable]
        accelerators = sum(len(host.accelerators) for host in reachable)
        ram = sum(host.ram_free for host in reachable)
        note.say(
            f"{len(reachable)} of {len(snapshot.hosts)} hosts, {accelerators} accelerators,"
            f" {human_bytes(ram)} of free RAM"
        )
        return snapshot


async def take_snapshot(fleet: Fleet) -> FleetSnapshot:
    """Survey all hosts at once."""
    hosts = await asyncio.gather(*(_looked_at(host, fleet) for host in fleet.hosts))
    claims = await in_thread(ledger().claims.all)
    given = {"engines": fleet.engines, "registries": fleet.registries}
    # Hosts that are daemons on this machine share its store.
    here = {**given, "models": await in_thread(staged_models, settings().models)}
    return FleetSnapshot(
        hosts=tuple(
            host.with_claims(claims).model_copy(
                update=given if parse_access(host.address).is_remote else here
            )
            for host in hosts
        )
    )


async def _looked_at(host: Host, fleet: Fleet) -> HostSnapshot:
    """One that does not answer in time holds up nobody; its thread ends by its own time-outs."""
    try:
        return await asyncio.wait_for(in_thread(survey_host, host, fleet), HOST_SECONDS)
    except TimeoutError:
        return HostSnapshot(
            name=host.name,
            address=host.access.url,
            bind=host.bind,
            labels=host.labels,
            unreachable=f"it did not answer within {HOST_SECONDS:g} s",
        )
