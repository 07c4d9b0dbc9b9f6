"""Checking `engine.args` with the schemas of this machine."""

from __future__ import annotations

from pathlib import Path

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.engines.schemas import SchemaStore
from moorage.adapters.hosts.local_host import installed_program
from moorage.common.failures import Failure
from moorage.engines.base import Engine
from moorage.engines.registry import ENGINES
from moorage.engines.schema.argument import Schema
from moorage.engines.schema.check import (
    check_arguments,
    check_likely,
    likely_versions,
    refuse_secrets,
    words_of,
)
from moorage.images.image import Image
from moorage.inventory.fleet import Fleet
from moorage.inventory.fleet_engines import EngineVersions
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.engine import require_engine_of_command
from moorage.placement.links import require_ports
from moorage.spec import EngineName, EngineSpec, ModelSpec
from moorage.spec.image_reference import parse_reference


def check_early(spec: ModelSpec, fleet: Fleet, home: Path) -> None:
    """Refuse arguments that no possible version takes. Reads files only, in milliseconds.

    Raises:
        Failure: `BAD_SPEC`.
    """
    wanted = spec.engine
    require_engine_of_command(wanted, ENGINES)
    engine = ENGINES[EngineName.VLLM]
    require_ports(spec, fleet, engine.joined_by(spec))
    # An image without an engine's name is vLLM's. Otherwise the fleet decides, and the check
    # follows after placement.
    is_meant = wanted.stated_name == engine.name or (
        wanted.stated_name == EngineName.AUTO and wanted.image
    )
    if not is_meant or not words_of(wanted) or engine.argument_rules is None:
        return
    configured = fleet.engines.get(engine.name, EngineVersions())
    if _has_own_command(configured, wanted):
        refuse_secrets(wanted)
        return
    default = configured.default_version or engine.default_version
    store = SchemaStore(home)
    program = installed_program(engine)
    installed = program.version if program else None
    versions = likely_versions(wanted, default, installed)
    schemas = [store.of_version(version) for version in versions]
    check_likely(wanted, engine.argument_rules, schemas, store.every)


def check_placed(
    spec: ModelSpec, engine: Engine, host: HostSnapshot, image: Image | None, home: Path
) -> tuple[str, ...]:
    """Check the arguments for the engine and version that will run.

    Args:
        spec: What the user wrote.
        engine: The engine that was chosen.
        host: Where it runs.
        image: Its image; None = the program that is installed there.
        home: The home of moorage.

    Returns:
        Warnings for a person.

    Raises:
        Failure: `BAD_SPEC`.
    """
    own = _has_own_command(host.engine_versions(engine.name), spec.engine)
    if engine.argument_rules is None or own or not words_of(spec.engine):
        refuse_secrets(spec.engine)
        return ()
    store = SchemaStore(home)
    schema = _schema(store, engine, host, image)
    return check_arguments(spec.engine, engine.argument_rules, schema, store.every)


def check_on_cluster(spec: ModelSpec, home: Path) -> tuple[str, ...]:
    """Check vLLM's arguments for a Ray cluster, as far as its version is known.

    Raises:
        Failure: `BAD_SPEC`.
    """
    engine = ENGINES[EngineName.VLLM]
    if spec.engine.name == EngineName.CUSTOM or engine.argument_rules is None:
        return ()
    every = SchemaStore(home).every
    schema = schema_on_cluster(spec, home)
    return check_arguments(spec.engine, engine.argument_rules, schema, every)


def schema_on_cluster(spec: ModelSpec, home: Path) -> Schema:
    """The arguments of the version that the spec says a cluster has, else of the default one."""
    store = SchemaStore(home)
    default = ENGINES[EngineName.VLLM].default_version
    found = store.of_version(spec.engine.version or default)
    return found or store.every()[0]


def _has_own_command(configured: EngineVersions, wanted: EngineSpec) -> bool:
    """Whether a configured version is started by a line that other programs may read."""
    found = configured.find(wanted.version or "")
    return found is not None and bool(found[1].entrypoint or found[1].run_command)


def _schema(
    store: SchemaStore, engine: Engine, host: HostSnapshot, image: Image | None
) -> Schema | None:
    """A schema extracted from the image itself is preferred to that of its version."""
    if image is None:
        program = host.program(engine.name)
        return store.of_version(program.version) if program else None
    return store.of_image(*_digests(host, image)) or store.of_version(image.engine_version)


def _digests(host: HostSnapshot, image: Image) -> tuple[str, ...]:
    """Digests and local id of an image, as far as known before a pull."""
    stated = parse_reference(image.reference).digest
    known = tuple(name for name in (stated, image.digest, image.identity) if name)
    if known:
        return known
    try:
        there = DockerImages(host.address).find(image.reference)
    except Failure:
        # A daemon that does not answer is reported by the step that needs it.
        return ()
    return (*there.digests, there.identity) if there else ()
