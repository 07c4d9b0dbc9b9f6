"""Step survey: take a snapshot of the fleet."""

from collections.abc import Sequence

from moorage.adapters.hosts.survey import HOST_SECONDS, fleet_snapshot, survey_hosts
from moorage.adapters.ray.cluster_survey import survey_cluster
from moorage.adapters.system.process import paused_collector
from moorage.adapters.system.threads import in_thread
from moorage.common.units import human_bytes
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.spec import ModelSpec
from tasks.cleanup import abandoned
from tasks.context import ledger, settings
from tasks.flow_task import flow_task
from tasks.journal import step
from tasks.map_hosts import HostCall, map_hosts


@flow_task("survey", "survey the fleet", timeout_seconds=120, retried=True)
async def survey(fleet: Fleet, cluster: str | None = None) -> FleetSnapshot:
    """Survey every host, with the ledger's claims on it; or one Ray cluster."""
    with step("survey") as note:
        if cluster:
            seen = await in_thread(survey_cluster, cluster, fleet.clusters[cluster])
            note.say(seen.summary)
            return FleetSnapshot(hosts=(), clusters=(seen,))
        snapshot = await take_snapshot(fleet)
        reachable = [host for host in snapshot.hosts if not host.unreachable]
        accelerators = sum(len(host.accelerators) for host in reachable)
        ram = sum(host.ram_free for host in reachable)
        note.say(
            f"{len(reachable)} of {len(snapshot.hosts)} hosts, {accelerators} accelerators,"
            f" {human_bytes(ram)} of free RAM"
        )
        return snapshot


async def survey_without_abandoned(fleet: Fleet, spec: ModelSpec) -> FleetSnapshot:
    """Survey the fleet as a deploy finds it: without killed flows and its sleeping release."""
    snapshot = await survey(fleet, spec.placement.cluster)
    for row in await in_thread(abandoned, spec.name):
        snapshot = snapshot.without(row.id)
    if sleeper := await in_thread(ledger().releases.asleep, spec.name):
        remove = snapshot.without if sleeper.workloads else snapshot.without_claims
        return remove(sleeper.id)
    return snapshot


async def take_snapshot(fleet: Fleet) -> FleetSnapshot:
    """Survey all hosts, `surveys_at_once` of them concurrently."""
    calls = [
        HostCall(host.name, host.access.url, {"alone": fleet.model_copy(update={"hosts": (host,)})})
        for host in fleet.hosts
    ]
    hosts = await map_hosts(survey_host, calls, settings().surveys_at_once)
    return await in_thread(_complete, hosts, fleet)


def _complete(hosts: Sequence[HostSnapshot], fleet: Fleet) -> FleetSnapshot:
    with paused_collector():
        return fleet_snapshot(hosts, fleet, ledger().claims.all(), settings().models)


@flow_task("look", "survey {alone.hosts[0].name}")
async def survey_host(alone: Fleet) -> HostSnapshot:
    """Survey one host, given as a fleet of its own; an unreachable host raises nothing."""
    (seen,) = await in_thread(survey_hosts, alone, HOST_SECONDS)
    return seen
