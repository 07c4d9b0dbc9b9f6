"""Step keep: the folders of remote hosts in which engines keep things for their next start."""

from __future__ import annotations

import asyncio

from prefect import task

from moorage.adapters.docker.helper import PULL_SECONDS, have_helper
from moorage.adapters.engines.engine_caches import keeps, make_kept_on
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.inventory.access import parse_access
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from tasks.context import in_thread
from tasks.journal import step
from tasks.retries import RETRIED


async def keep(plan: LaunchPlan, snapshot: FleetSnapshot) -> None:
    """Have the folders of a plan on hosts that are other machines; here the runtime makes them."""
    hosts = {
        spec.host
        for spec in plan.containers
        if keeps(spec) and parse_access(spec.address).is_remote
    }
    await asyncio.gather(*(keep_on(host, plan, snapshot) for host in sorted(hosts)))


@task(name="keep", task_run_name="have folders to keep things in on {host}", **RETRIED)
async def keep_on(host: str, plan: LaunchPlan, snapshot: FleetSnapshot) -> None:
    """Have them on one host."""
    with step(f"keep on {host}") as note:
        specs = [spec for spec in plan.containers if spec.host == host]
        await in_thread(_make, snapshot.host(host), specs)
        kept = {mount.source for spec in specs for mount in spec.mounts if mount.kept}
        note.say(", ".join(sorted(kept)))


def _make(host: HostSnapshot, specs: list[ContainerSpec]) -> None:
    image = have_helper(host, host.helper_image, PULL_SECONDS)
    make_kept_on(host.model_copy(update={"helper_image": image}), specs)
