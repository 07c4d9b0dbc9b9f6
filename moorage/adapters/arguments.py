"""Checking `engine.args` with the schemas of this machine."""

from __future__ import annotations

from pathlib import Path

from moorage.adapters.docker import DockerRuntime
from moorage.adapters.hosts import installed_program
from moorage.adapters.schemas import SchemaStore
from moorage.engines.base import Engine
from moorage.engines.registry import ENGINES
from moorage.engines.schema.argument import Schema
from moorage.engines.schema.check import (
    check_arguments,
    check_likely,
    likely_versions,
    words_of,
)
from moorage.failures import Failure
from moorage.images.image import Image
from moorage.images.reference import parse_reference
from moorage.placement.snapshot import HostSnapshot
from moorage.spec import EngineName, ModelSpec


def check_early(spec: ModelSpec, home: Path) -> None:
    """Refuse what no version that may be meant takes, with nothing but the spec. Milliseconds.

    Raises:
        Failure: `BAD_SPEC`.
    """
    wanted = spec.engine
    engine = ENGINES[EngineName.VLLM]
    # Without a name, an image is vLLM's; else the fleet decides, and the check comes after.
    is_meant = wanted.name == engine.name or (wanted.name == EngineName.AUTO and wanted.image)
    if not is_meant or not words_of(wanted) or engine.argument_rules is None:
        return
    store = SchemaStore(home)
    program = installed_program(engine)
    installed = program.version if program else None
    versions = likely_versions(wanted, engine.default_version, installed)
    schemas = [store.of_version(version) for version in versions]
    check_likely(wanted, engine.argument_rules, schemas, store.every)


def check_placed(
    spec: ModelSpec, engine: Engine, host: HostSnapshot, image: Image | None, home: Path
) -> tuple[str, ...]:
    """Check the arguments for what will run.

    Args:
        spec: What the user wrote.
        engine: The engine that was chosen.
        host: Where it runs.
        image: Its image; None = the program that is installed there.
        home: Root of what moorage keeps.

    Returns:
        What a person should know.

    Raises:
        Failure: `BAD_SPEC`.
    """
    if engine.argument_rules is None or not words_of(spec.engine):
        return ()
    store = SchemaStore(home)
    schema = _schema(store, engine, host, image)
    return check_arguments(spec.engine, engine.argument_rules, schema, store.every)


def _schema(
    store: SchemaStore, engine: Engine, host: HostSnapshot, image: Image | None
) -> Schema | None:
    """What was extracted from the image itself tells more than its version does."""
    if image is None:
        program = host.program(engine.name)
        return store.of_version(program.version) if program else None
    return store.of_image(*_digests(host, image)) or store.of_version(image.engine_version)


def _digests(host: HostSnapshot, image: Image) -> tuple[str, ...]:
    """All that is known of an image before it is pulled."""
    stated = parse_reference(image.reference).digest
    known = tuple(name for name in (stated, image.digest, image.identity) if name)
    if known:
        return known
    try:
        return DockerRuntime(host.address).image_identity(image.reference) or ()
    except Failure:
        # A daemon that does not answer is told about where it is needed.
        return ()
