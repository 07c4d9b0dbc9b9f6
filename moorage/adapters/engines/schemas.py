"""Checks `engine.args` against the schema of the version that will run."""

from functools import partial
from pathlib import Path

from moorage.adapters.docker.images import DockerImages
from moorage.adapters.engines.schema_store import SchemaStore, shipped_schemas
from moorage.adapters.hosts.local_host import installed_program
from moorage.common.failures import Failure
from moorage.engines.base import Engine
from moorage.engines.registry import ENGINES
from moorage.engines.schema.argument import Schema
from moorage.engines.schema.check import (
    ArgumentCheck,
    Schemas,
    check_arguments,
    check_likely,
    likely_versions,
    refuse_secrets,
    words_of,
)
from moorage.engines.schema.history import assumed_schema
from moorage.images.image import Image
from moorage.inventory.fleet import Fleet
from moorage.inventory.fleet_engines import EngineVersions
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.engine_checks import require_engine_of_command
from moorage.placement.links import require_ports
from moorage.spec import EngineName, EngineSpec, Mode, ModelSpec, RuntimeName
from moorage.spec.image_reference import parse_reference


def check_early(spec: ModelSpec, fleet: Fleet, home: Path) -> None:
    """Raise `BAD_SPEC` for arguments that no possible version accepts; reads local files only."""
    wanted = spec.engine
    require_engine_of_command(wanted, ENGINES)
    stated = ENGINES.get(wanted.stated_name)
    engine = stated if stated and stated.argument_rules else ENGINES[EngineName.VLLM]
    require_ports(spec, fleet, engine)
    # An image without an engine's name counts as vLLM. Without both, the fleet decides on the
    # engine, and the check follows after placement.
    name = wanted.stated_name
    is_meant = name == engine.name or (name == EngineName.AUTO and wanted.image)
    rules = engine.rules(in_container=wanted.runtime != RuntimeName.PROCESS)
    if not is_meant or not words_of(wanted) or rules is None:
        return
    if _has_own_command(fleet.engines.get(engine.name, EngineVersions()), wanted):
        refuse_secrets(wanted)
        return
    versions = versions_by_spec(wanted, engine, fleet)
    store, every = _known_to(engine, home)
    schemas = [
        None if _is_for_omni(spec, engine) else store.of_version(engine.argument_version(version))
        for version in versions
    ]
    check_likely(wanted, rules, schemas, every)


def versions_by_spec(wanted: EngineSpec, engine: Engine, fleet: Fleet) -> tuple[str, ...]:
    """Versions that may run, likeliest first, before a host is chosen; empty = unknown."""
    configured = fleet.engines.get(engine.name, EngineVersions())
    default = configured.default_version or engine.default_version
    program = installed_program(engine)
    return likely_versions(wanted, default, program.version if program else None)


def check_placed(
    spec: ModelSpec, engine: Engine, host: HostSnapshot, image: Image | None, home: Path
) -> ArgumentCheck:
    """Check the arguments for the engine and version that will run.

    Without an image, that is the program installed on the host. Raises `BAD_SPEC`.
    """
    rules = engine.rules(in_container=image is not None)
    own = _has_own_command(host.engine_versions(engine.name), spec.engine)
    if rules is None or own or not words_of(spec.engine):
        refuse_secrets(spec.engine)
        return ArgumentCheck()
    store, every = _known_to(engine, home)
    if _is_for_omni(spec, engine):
        unknown = rules.model_copy(update={"extracted_as": None})
        return check_arguments(spec.engine, unknown, None, every)
    schema = _schema_of(engine, host, image, store)
    return check_arguments(spec.engine, rules, schema, every, image.reference if image else "")


def check_on_cluster(spec: ModelSpec, home: Path) -> ArgumentCheck:
    """Check vLLM's arguments as far as a Ray cluster's version is known; raises `BAD_SPEC`."""
    engine = ENGINES[EngineName.VLLM]
    if spec.engine.name == EngineName.CUSTOM or engine.argument_rules is None:
        return ArgumentCheck()
    schema = schema_on_cluster(spec, home)
    return check_arguments(spec.engine, engine.argument_rules, schema, shipped_schemas)


def schema_on_cluster(spec: ModelSpec, home: Path) -> Schema:
    """Schema of the version that the spec names for a cluster, otherwise of the default version."""
    version = spec.engine.version or ENGINES[EngineName.VLLM].default_version
    return SchemaStore(home).of_version(version) or shipped_schemas()[0]


def schema_for_plan(
    engine: Engine, host: HostSnapshot, image: Image | None, home: Path
) -> Schema | None:
    """Schema for writing a plan's arguments; None for an engine whose plans need no schema.

    For a version without a schema it has the arguments of all versions.
    """
    if not engine.planned_by_version:
        return None
    store, every = _known_to(engine, home)
    if own := _schema_of(engine, host, image, store):
        return own
    return assumed_schema(_argument_version(engine, host, image), every())


def _is_for_omni(spec: ModelSpec, engine: Engine) -> bool:
    """Whether vLLM hands the arguments to vllm-omni, which has its own parser."""
    stated = spec.engine.arguments.switch("--omni")
    return engine.name == EngineName.VLLM and bool(stated or spec.mode == Mode.IMAGE_GENERATION)


def _known_to(engine: Engine, home: Path) -> tuple[SchemaStore, Schemas]:
    """Schemas of an engine, or of the engine whose arguments it takes."""
    name = engine.takes_arguments_of or engine.name
    return SchemaStore(home, name), partial(shipped_schemas, name)


def _has_own_command(configured: EngineVersions, wanted: EngineSpec) -> bool:
    found = configured.find(wanted.version or "")
    return found is not None and bool(found[1].entrypoint or found[1].run_command)


def _schema_of(
    engine: Engine, host: HostSnapshot, image: Image | None, store: SchemaStore
) -> Schema | None:
    """Schema extracted from the image itself, otherwise the schema of its version."""
    own = store.of_image(*_digests(host, image)) if image else None
    return own or store.of_version(_argument_version(engine, host, image))


def _argument_version(engine: Engine, host: HostSnapshot, image: Image | None) -> str:
    """The version by which arguments are looked up; empty = unknown."""
    if image is not None:
        return engine.argument_version(image.engine_version)
    program = host.program(engine.name)
    return engine.argument_version(program.version) if program else ""


def _digests(host: HostSnapshot, image: Image) -> tuple[str, ...]:
    """Digests and local id of an image, as far as they are known before a pull."""
    stated = parse_reference(image.reference).digest
    if known := tuple(filter(None, (stated, image.digest, image.identity))):
        return known
    try:
        there = DockerImages(host.address).find(image.reference)
    except Failure:  # the step that needs the daemon reports that it does not answer
        return ()
    return (*there.digests, there.identity) if there else ()
