"""Step survey: the fleet as it is now."""

from __future__ import annotations

import asyncio

from prefect import task

from moorage.adapters.hosts import survey_host
from moorage.adapters.sources.store import staged_models
from moorage.fleet import Fleet
from moorage.placement.snapshot import FleetSnapshot
from moorage.units import human_bytes
from tasks.context import in_thread, ledger, settings
from tasks.journal import step
from tasks.retries import RETRIED


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
    hosts = await asyncio.gather(*(in_thread(survey_host, host) for host in fleet.hosts))
    claims = await in_thread(ledger().claims.all)
    configured = {"engines": fleet.engines, "registries": fleet.registries}
    # Every host of the fleet is this machine or a daemon on it: they share its store.
    models = await in_thread(staged_models, settings().models)
    return FleetSnapshot(
        hosts=tuple(
            host.with_claims(claims).model_copy(update={"models": models, **configured})
            for host in hosts
        )
    )
