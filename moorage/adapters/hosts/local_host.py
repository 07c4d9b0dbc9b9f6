"""The survey of a host: processors, RAM, accelerators, ports, runtimes, installed engines."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import platform
import shutil
import sys
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil

from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.docker.images import DockerImages
from moorage.adapters.hosts.local_resources import local_accelerators, ports_in_use
from moorage.adapters.hosts.remote_host import survey_remote_host
from moorage.common.failures import Failure
from moorage.engines.base import Engine
from moorage.engines.registry import ENGINES
from moorage.images.catalogue import runner_rows
from moorage.inventory.catalogue import CatalogueRow
from moorage.inventory.fleet import Fleet, Host, StaticAccelerator
from moorage.inventory.snapshot import Accelerator, HostSnapshot, Program
from moorage.inventory.survey.facts import ARCHITECTURES, Found, HostFacts, interface_of
from moorage.spec import RuntimeName

NEEDED_MODULES = {"transformers": ("torch", "uvicorn", "fastapi", "requests")}
"""Modules that an engine's program needs besides its own package."""


RUNNER_PACKAGE = "gpustack_runner"


def survey_host(host: Host, fleet: Fleet | None = None) -> HostSnapshot:
    """The resources of a host and their use. Claims are added from the ledger.

    Args:
        host: The host.
        fleet: Its fleet; None = a fleet of its own.
    """
    look = _look_at_another if host.access.is_remote else _look_at_this
    return describe(host).model_copy(update=look(host, fleet or Fleet()))


def describe(host: Host) -> HostSnapshot:
    """A host as the fleet file describes it, before a survey."""
    return HostSnapshot(
        name=host.name,
        address=host.access.url,
        bind=host.bind,
        labels=host.labels,
        ram_reserve=int(host.reserve.ram),
        accelerator_reserve=int(host.reserve.accelerator_memory),
        port_range=host.port_range,
        ray_range=host.ray_range,
    )


def _look_at_this(host: Host, _fleet: Fleet) -> dict[str, Any]:
    runtimes, docker, trouble = _runtimes(host)
    memory = psutil.virtual_memory()
    facts = HostFacts(
        cores=psutil.cpu_count() or 1,
        ram_total=memory.total,
        ram_free=memory.available,
        ports=tuple(sorted(ports_in_use(host.bind, *host.port_range))),
        docker=docker,
        machine=platform.machine(),
        **dict(local_accelerators() if host.accelerators == "auto" else Found()),
    )
    return {
        **_described(host, facts),
        "unreachable": "" if runtimes else trouble,
        "runtimes": runtimes,
        "interface": host.interface or _interface_with(host.bind),
        "programs": _programs() if RuntimeName.PROCESS in runtimes else (),
        "images": _images(host) if RuntimeName.DOCKER in runtimes else frozenset(),
    }


def _look_at_another(host: Host, fleet: Fleet) -> dict[str, Any]:
    gpus = host.accelerators == "auto"
    try:
        known = describe(host).model_copy(update={"registries": fleet.registries})
        facts = survey_remote_host(known, fleet.helper_image, host.store, gpus)
        images = DockerImages(host.access.url).names()
    except Failure as failure:
        return {"unreachable": failure.detail}
    return {
        **_described(host, facts),
        "runtimes": (RuntimeName.DOCKER,),
        "images": images,
        "interface": host.interface or interface_of(host.bind, facts.routes),
        "store": host.store,
        "models": frozenset(facts.models),
        "helper_image": facts.helper_image or fleet.helper_image,
        "shares_models": fleet.share_models,
    }


def _described(host: Host, facts: HostFacts) -> dict[str, Any]:
    """Entries of the fleet file take precedence over surveyed facts."""
    architecture = ARCHITECTURES.get(facts.machine, facts.machine)
    total = facts.ram_total if host.ram == "auto" else int(host.ram)
    accelerators = facts.accelerators
    if host.accelerators != "auto":
        accelerators = tuple(_written(item) for item in host.accelerators)
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
        "troubles": facts.troubles,
        "catalogue": runner_images({item.type for item in accelerators}, architecture),
    }


def docker_version(address: str) -> tuple[str, str]:
    """The version of the Docker daemon of a host, or why it does not answer."""
    try:
        return DockerRuntime(address).version(), ""
    except Failure as failure:
        return "", failure.detail


def installed_program(engine: Engine) -> Program | None:
    """An engine that is installed on this machine: next to this Python, else on the path."""
    if not engine.program:
        return None
    own = Path(sys.executable).parent / engine.program
    if own.exists():
        needed = NEEDED_MODULES.get(engine.program, ())
        if not all(importlib.util.find_spec(module) for module in needed):
            return None
        try:
            version = importlib.metadata.version(engine.program)
        except importlib.metadata.PackageNotFoundError:
            # The program needs its version too (vLLM 0.32, `entrypoints/cli/main.py`).
            return None
        return Program(engine=engine.name, path=str(own), version=version)
    elsewhere = shutil.which(engine.program)
    return Program(engine=engine.name, path=elsewhere, version="") if elsewhere else None


def _images(host: Host) -> frozenset[str]:
    """Images that need no pull. A daemon that does not answer gets no bonus for images."""
    try:
        return DockerImages(host.access.url).names()
    except Failure:
        return frozenset()


def _runtimes(host: Host) -> tuple[tuple[RuntimeName, ...], str, str]:
    """The runtimes, the version of Docker, and why Docker does not answer."""
    allowed = ("docker", "process") if host.runtimes == "auto" else host.runtimes
    found: list[RuntimeName] = []
    version, trouble = "", "no runtime is allowed on this host"
    if "docker" in allowed:
        version, trouble = docker_version(host.access.url)
        found += [RuntimeName.DOCKER] if version else []
    if "process" in allowed and host.address == "local":
        found.append(RuntimeName.PROCESS)
    return tuple(found), version, trouble


def _written(item: StaticAccelerator) -> Accelerator:
    memory = int(item.memory)
    return Accelerator(
        type=item.type,
        index=item.index,
        name=item.name,
        memory_total=memory,
        memory_free=memory,
        runtime_version=item.runtime_version or "",
        family=item.family,
        node=item.node or "",
    )


def _programs() -> tuple[Program, ...]:
    return tuple(program for engine in ENGINES.values() if (program := installed_program(engine)))


def _interface_with(bind: str) -> str:
    """The interface of this machine with an address; empty for a daemon in another network."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(item.address == bind for item in addresses):
            return str(name)
    return ""


def runner_images(kinds: Collection[str], architecture: str) -> tuple[CatalogueRow, ...]:
    """The images for some accelerator types on a CPU architecture; none without the package."""
    if not kinds or importlib.util.find_spec(RUNNER_PACKAGE) is None:
        return ()
    return tuple(
        row
        for row in _runner_rows()
        if row.accelerator_type in kinds and architecture in row.architectures
    )


@lru_cache(maxsize=1)
def _runner_rows() -> tuple[CatalogueRow, ...]:
    package: Any = importlib.import_module(RUNNER_PACKAGE)
    return runner_rows(package.list_runners(todict=True))
