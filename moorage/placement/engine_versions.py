"""The versions of an engine that may run on the hosts of a fleet, by accelerator type."""

from collections.abc import Iterator, Mapping
from operator import itemgetter

from moorage.common.failures import Failure
from moorage.common.refusal import Refusal
from moorage.common.values import fields
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.placement.engine import EngineTraits
from moorage.placement.runtime import alike, choose_runtime, image_on, program_version
from moorage.spec import ModelSpec, RuntimeName

Versions = tuple[str, ...]
"""Distinct versions; an empty string = unknown."""


def engine_versions(
    spec: ModelSpec, engine: EngineTraits, fleet: FleetSnapshot | None
) -> Mapping[str, Versions]:
    """The versions that would run, by accelerator type; types without any are left out."""
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
    """For each accelerator type, one host of each group with equal runtimes, driver and so on.

    The fleet's configuration of an engine is the same for all of its hosts.
    """
    alikes, seen = set(), set()
    for host in fleet.hosts if fleet else ():
        for kind in set(map(_type_of, map(fields, fields(host)["accelerators"]))):
            if (key := alike(host, kind)) in alikes:  # reading a catalogue is slow
                continue
            alikes.add(key)
            device, program = host.first(kind), host.program(engine.name)
            assert device is not None
            shared = (host.runtimes, host.architecture, program, host.catalogue)
            family = host.newest_family(kind)
            if (unlike := (kind, device.runtime_version, family, shared)) not in seen:
                seen.add(unlike)
                yield kind, host


_type_of = itemgetter("type")


def _version_on(spec: ModelSpec, engine: EngineTraits, host: HostSnapshot, kind: str) -> str:
    if choose_runtime(spec, engine, host, kind) is RuntimeName.DOCKER:
        return image_on(spec, engine, host, kind).engine_version
    return program_version(spec.engine, engine, host)
