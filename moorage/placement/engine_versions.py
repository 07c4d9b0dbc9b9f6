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
            version = _version_on(spec, engine, host, kind)
        except (Refusal, Failure):
            continue
        found.setdefault(kind, {})[version] = None
    return {kind: tuple(versions) for kind, versions in found.items()}


def _unlike(
    engine: EngineTraits, fleet: FleetSnapshot | None
) -> Iterator[tuple[str, HostSnapshot]]:
    """One of the hosts with the same runtimes, program, driver and images, for each type.

    What a fleet says about an engine is the same for all of its hosts.
    """
    seen = set()
    for host in fleet.hosts if fleet else ():
        program = host.program(engine.name) if host.programs else None
        shared = (host.runtimes, host.architecture, program, host.catalogue)
        for kind in {one.type for one in host.accelerators}:
            device = host.first(kind)
            assert device is not None
            key = (kind, device.runtime_version, device.family, shared)
            if key not in seen:
                seen.add(key)
                yield kind, host


def _version_on(spec: ModelSpec, engine: EngineTraits, host: HostSnapshot, kind: str) -> str:
    if choose_runtime(spec, engine, host, kind) is RuntimeName.DOCKER:
        return image_on(spec, engine, host, kind).engine_version
    return program_version(spec.engine, engine, host)
