"""The versions of an engine that may run on the hosts of a fleet, by accelerator type."""

from collections.abc import Mapping
from contextlib import suppress

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
    every = (hardware for host in fleet.hosts for hardware in hardware_on(host)) if fleet else ()
    for hardware in {alike(*one): one for one in every}.values():
        with suppress(Refusal, Failure):
            version = _version_on(spec, engine, hardware)
            found.setdefault(hardware.chip.type, {})[version] = None
    return {kind: tuple(versions) for kind, versions in found.items()}


def _version_on(spec: ModelSpec, engine: EngineTraits, hardware: Hardware) -> str:
    if choose_runtime(spec, engine, hardware) is RuntimeName.DOCKER:
        return image_on(spec, engine, hardware).engine_version
    return program_version(spec.engine, engine, hardware.host)
