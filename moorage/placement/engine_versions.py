"""The versions of an engine that may run on the hosts of a fleet, by accelerator type."""

from collections.abc import Iterator, Mapping

from moorage.common.failures import Failure
from moorage.common.refusal import Refusal
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.engine import EngineTraits
from moorage.placement.runtime import (
    Hardware,
    alike,
    choose_runtime,
    hardware_on,
    image_on,
    program_version,
)
from moorage.spec import ModelSpec, RuntimeName

Versions = tuple[str, ...]
"""Distinct versions; an empty string = unknown."""


def engine_versions(
    spec: ModelSpec, engine: EngineTraits, fleet: FleetSnapshot | None
) -> Mapping[str, Versions]:
    """The versions that would run, by accelerator type; types without any are left out."""
    found: dict[str, dict[str, None]] = {}
    for hardware in _unlike(engine, fleet):
        try:
            version = _version_on(spec, engine, hardware)
        except (Refusal, Failure):
            continue
        found.setdefault(hardware.chip.type, {})[version] = None
    return {kind: tuple(versions) for kind, versions in found.items()}


def _unlike(engine: EngineTraits, fleet: FleetSnapshot | None) -> Iterator[Hardware]:
    """The hardware of one host of each group with equal runtimes, driver and so on.

    The fleet's configuration of an engine is the same for all of its hosts.
    """
    alikes, seen = set(), set()
    for host in fleet.hosts if fleet else ():
        for hardware in hardware_on(host):
            key = alike(*hardware)
            if key in alikes:  # reading a catalogue is slow
                continue
            alikes.add(key)
            program = host.program(engine.name)
            shared = (host.runtimes, host.architecture, program, host.catalogue)
            if (unlike := (hardware.chip, shared)) not in seen:
                seen.add(unlike)
                yield hardware


def _version_on(spec: ModelSpec, engine: EngineTraits, hardware: Hardware) -> str:
    if choose_runtime(spec, engine, hardware) is RuntimeName.DOCKER:
        return image_on(spec, engine, hardware).engine_version
    return program_version(spec.engine, engine, hardware.host)
