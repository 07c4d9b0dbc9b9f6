"""The versions of an engine that may run on the hosts of a fleet, by type of accelerator."""

from collections.abc import Iterator, Mapping

from moorage.common.failures import Failure
from moorage.common.refusal import Refusal
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.placement.engine import EngineTraits
from moorage.placement.runtime import choose_runtime, image_on, program_version
from moorage.spec import ModelSpec, RuntimeName

Versions = tuple[str, ...]
"""Without repetition; an empty version = unknown."""


def engine_versions(
    spec: ModelSpec, engine: EngineTraits, fleet: FleetSnapshot | None
) -> Mapping[str, Versions]:
    """By type of accelerator the versions that would run; types on which none can are left out."""
    found: dict[str, dict[str, None]] = {}
    for kind, host in _unlike(engine, fleet):
        try:
            found.setdefault(kind, {})[_version_on(spec, engine, host, kind)] = None
        except (Refusal, Failure):
            continue
    return {kind: tuple(versions) for kind, versions in found.items()}


def _unlike(
    engine: EngineTraits, fleet: FleetSnapshot | None
) -> Iterator[tuple[str, HostSnapshot]]:
    """One of the hosts with the same runtimes, program, driver and images, for each type."""
    seen = set()
    for host in fleet.hosts if fleet else ():
        program = host.program(engine.name)
        shared = (host.runtimes, host.architecture, id(host.engines), id(host.catalogue))
        for kind in dict.fromkeys(one.type for one in host.accelerators):
            device = host.first(kind)
            driver = (device.runtime_version, device.family) if device else ()
            key = (kind, program.version if program else None, driver, shared)
            if key not in seen:
                seen.add(key)
                yield kind, host


def _version_on(spec: ModelSpec, engine: EngineTraits, host: HostSnapshot, kind: str) -> str:
    if choose_runtime(spec, engine, host, kind) is RuntimeName.DOCKER:
        return image_on(spec, engine, host, kind).engine_version
    return program_version(spec.engine, engine, host)
