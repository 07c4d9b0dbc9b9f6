"""Surveys of hosts: processors, RAM, accelerators, ports, runtimes, installed engines, images."""

import importlib
import importlib.util
import platform
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil

from moorage.adapters.docker.connection import READ_SECONDS, connection
from moorage.adapters.docker.image_list import image_names
from moorage.adapters.hosts.local_host import (
    installed_programs,
    interface_with,
    local_accelerators,
    ports_in_use,
    refuses_device_requests,
)
from moorage.adapters.hosts.remote_host import (
    ASK_SECONDS,
    ask_daemon,
    describe,
    survey_remote_host,
)
from moorage.adapters.sources.store import staged_models
from moorage.adapters.system.parallel import map_parallel
from moorage.common.failures import Failure
from moorage.common.values import fields
from moorage.images.catalogue import runner_rows
from moorage.images.choice import CANN
from moorage.inventory.access import LOCAL, machine_of
from moorage.inventory.claims import Claim, by_host
from moorage.inventory.devices import NVIDIA_RUNTIME
from moorage.inventory.fleet import Fleet, Host, StaticAccelerator
from moorage.inventory.fleet_engines import CatalogueRow
from moorage.inventory.snapshot import Accelerator, FleetSnapshot, HostSnapshot
from moorage.inventory.survey.ascend import chip_family
from moorage.inventory.survey.facts import ARCHITECTURES, Found, HostFacts, interface_of, is_wsl
from moorage.spec import RuntimeName

HOST_SECONDS = 20.0
"""Limit for a fleet, whose hosts are surveyed in parallel."""

TURN_SECONDS = 0.02
"""What each host adds to that limit: processor time of this machine, if it is slow."""

RUNNER_PACKAGE = "gpustack_runner"

_CATALOGUE = threading.Lock()

UNSEEN = fields(HostSnapshot.model_construct(name=""))
"""The defaults of a host's fields, which a survey leaves if it finds nothing."""


def survey_hosts(
    fleet: Fleet, seconds: float = HOST_SECONDS, on_done: Callable[[], None] = lambda: None
) -> tuple[HostSnapshot, ...]:
    """The resources of every host and their use.

    A host that does not answer in time is unreachable; its requests continue until their time-outs.
    """
    limit = seconds + TURN_SECONDS * len(fleet.hosts)
    outcomes = map_parallel(lambda host: survey_host(host, fleet), fleet.hosts, limit, on_done)
    hosts = []
    for host, outcome in zip(fleet.hosts, outcomes, strict=True):
        if isinstance(outcome, Exception):
            late = isinstance(outcome, TimeoutError) and not outcome.args
            why = f"it did not answer within {limit:.0f} s" if late else f"{outcome!r}"
            outcome = describe(host).model_copy(update={"unreachable": why})
        hosts.append(outcome)
    return tuple(hosts)


def _without_avoided(host: HostSnapshot, fleet: Fleet) -> HostSnapshot:
    """The host without the accelerators that the fleet avoids, or unreachable if wholly avoided."""
    own = [one for one in fleet.avoid if one.host == host.name]
    if whole := next((one for one in own if not one.accelerators), None):
        # If the host does not answer, that reason has precedence: a person has to repair it.
        why = f"avoided: {whole.reason or 'the fleet says so'}"
        return host.model_copy(update={"unreachable": host.unreachable or why})
    avoided = fleet.avoided_accelerators(host.name)
    usable = tuple(item for item in host.accelerators if item.index not in avoided)
    troubles = [
        f"accelerators {', '.join(map(str, one.accelerators))} are avoided: {one.reason}"
        for one in own
    ]
    every = (*host.troubles, *(text.rstrip(": ") for text in troubles))
    return host.model_copy(update={"accelerators": usable, "troubles": every})


def fleet_snapshot(
    hosts: Iterable[HostSnapshot], fleet: Fleet, claims: tuple[Claim, ...], models: Path
) -> FleetSnapshot:
    """The surveyed hosts, completed by the ledger's claims and the fleet.

    Daemons on this machine share its model store, `models`.
    """
    stated = {"engines": fleet.engines, "registries": fleet.registries}
    given = {name: value for name, value in stated.items() if value != UNSEEN[name]}
    here = {**given, "models": staged_models(models)}
    claimed, avoided = by_host(claims), {one.host for one in fleet.avoid}

    def completed(host: HostSnapshot) -> HostSnapshot:
        there = fields(host)
        name = there["name"]
        changes = here if machine_of(there["address"]) == LOCAL else given
        if own := claimed.get(name):
            changes = {**changes, "claims": host.current_claims(own)}
        usable = _without_avoided(host, fleet) if name in avoided else host
        # In a large fleet most hosts have no changes, and need not be copied.
        return usable.model_copy(update=changes) if changes else usable

    return FleetSnapshot(hosts=tuple(map(completed, hosts)))


def survey_host(host: Host, fleet: Fleet | None = None) -> HostSnapshot:
    """The resources of a host and their use, without claims. Only remote hosts need the fleet."""
    remote = host.access.is_remote
    facts = _remote_facts(host, fleet or Fleet()) if remote else _local_facts(host)
    return describe(host).model_copy(update=facts)


def _local_facts(host: Host) -> dict[str, Any]:
    allowed = ("docker", "process") if host.runtimes == "auto" else host.runtimes
    docker, trouble = "", "no runtime is allowed on this host"
    if "docker" in allowed:
        docker, trouble = docker_version(host.access.url)
    processes = "process" in allowed and host.address == "local"
    memory = psutil.virtual_memory()
    facts = HostFacts(
        cores=psutil.cpu_count() or 1,
        ram_total=memory.total,
        ram_free=memory.available,
        ports=tuple(sorted(ports_in_use(host.bind, *host.port_range))),
        docker=docker,
        machine=platform.machine(),
        kernel=platform.release(),
        needs_nvidia_runtime=bool(docker) and _needs_nvidia_runtime(host),
        **dict(local_accelerators() if host.accelerators == "auto" else Found()),
    )
    merged = _merge(host, facts)
    accelerated = bool(merged["accelerators"])
    return {
        **merged,
        "unreachable": "" if docker or processes else trouble,
        "runtimes": (
            *((RuntimeName.DOCKER,) if docker else ()),
            *((RuntimeName.PROCESS,) if processes else ()),
        ),
        "interface": host.interface or interface_with(host.bind),
        "programs": installed_programs(accelerated=accelerated) if processes else (),
        "images": _images_here(host) if docker else frozenset(),
    }


def _images_here(host: Host) -> frozenset[str]:
    """The images of Docker on this machine; none, and no bonus for them, without an answer."""
    with suppress(Failure), connection(host.access.url, READ_SECONDS) as daemon:
        return image_names(daemon)
    return frozenset()


def _needs_nvidia_runtime(host: Host) -> bool:
    """Whether containers on this machine need NVIDIA's runtime, and Docker lists it."""
    if refuses_device_requests(platform.release()):
        with suppress(Failure), connection(host.access.url, ASK_SECONDS) as daemon:
            return NVIDIA_RUNTIME in (ask_daemon(daemon).get("Runtimes") or {})
    return False


def docker_version(address: str) -> tuple[str, str]:
    """The version of a Docker daemon, and the reason if it does not answer; one is empty."""
    try:
        with connection(address, ASK_SECONDS) as daemon:
            return str(daemon.get("/version")["Version"]), ""
    except Failure as failure:
        return "", failure.detail


def _remote_facts(host: Host, fleet: Fleet) -> dict[str, Any]:
    try:
        facts = survey_remote_host(host, fleet)
    except Failure as failure:
        return {"unreachable": failure.detail}
    return {
        **_merge(host, facts),
        "runtimes": (RuntimeName.DOCKER,),
        "images": facts.images,
        "interface": host.interface or interface_of(host.bind, facts.routes),
        "store": host.store,
        "models": frozenset(facts.models),
        "image_disk_free": facts.image_disk_free,
        "disk_free": facts.disk_free,
        "begun": facts.begun,
        "helper_image": facts.helper_image or fleet.helper_image,
        "shares_models": fleet.share_models,
    }


def _merge(host: Host, facts: HostFacts) -> dict[str, Any]:
    """Fields of a snapshot: entries of the fleet file take precedence over surveyed facts."""
    architecture = ARCHITECTURES.get(facts.machine, facts.machine)
    total = facts.ram_total if host.ram == "auto" else int(host.ram)
    accelerators = facts.accelerators
    if host.accelerators != "auto":
        accelerators = tuple(map(_accelerator, host.accelerators))
    return {
        "architecture": architecture,
        "docker": facts.docker,
        "cpus": facts.cores if host.cores == "auto" else host.cores,
        "ram_total": total,
        "ram_free": min(total, facts.ram_free),
        "ports_in_use": facts.ports,
        "accelerators": accelerators,
        "unified_memory": host.unified_memory or facts.unified_memory,
        "links": facts.links,
        "exposes_all_gpus": is_wsl(facts.kernel),
        "needs_nvidia_runtime": facts.needs_nvidia_runtime,
        "troubles": facts.troubles,
        "hides_accelerators": facts.hides_accelerators,
        "catalogue": _catalogue(frozenset(item.type for item in accelerators), architecture),
    }


def _catalogue(kinds: frozenset[str], architecture: str) -> tuple[CatalogueRow, ...]:
    # Else each thread would read the whole package, into objects of its own.
    with _CATALOGUE:
        return runner_images(kinds, architecture)


def _accelerator(item: StaticAccelerator) -> Accelerator:
    memory = int(item.memory)
    stated = item.model_dump(exclude={"memory"}, exclude_none=True)
    if item.type == CANN:
        stated["family"] = chip_family(item.family)
    return Accelerator(memory_total=memory, memory_free=memory, **stated)


@lru_cache(maxsize=64)
def runner_images(kinds: frozenset[str], architecture: str) -> tuple[CatalogueRow, ...]:
    """Catalogue rows for accelerator types on a CPU architecture; none without the package.

    Cached, so that equal hosts share one object: placement recognises it by its `id`.
    """
    if not kinds or importlib.util.find_spec(RUNNER_PACKAGE) is None:
        return ()
    package: Any = importlib.import_module(RUNNER_PACKAGE)
    return tuple(
        row
        for row in runner_rows(package.list_runners(todict=True))
        if row.accelerator_type in kinds and architecture in row.architectures
    )
