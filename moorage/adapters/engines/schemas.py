"""Schemas of engines' arguments, shipped or extracted here, and the check of `engine.args`."""

import re
import subprocess
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.docker.images import DockerImages
from moorage.adapters.hosts.local_host import installed_program
from moorage.common.failures import Cause, Failure
from moorage.common.versions import version_key
from moorage.engines.base import Engine
from moorage.engines.registry import ENGINES
from moorage.engines.schema.argument import Schema
from moorage.engines.schema.check import (
    Schemas,
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
from moorage.spec import EngineName, EngineSpec, ModelSpec, RuntimeName
from moorage.spec.image_reference import parse_reference

DESCRIBED = (EngineName.VLLM, EngineName.SGLANG, EngineName.TRANSFORMERS)
"""Engines whose arguments are known by version; others may take those of one of them."""

FOLDER = "schemas"
DIGEST = re.compile(r"[^A-Za-z0-9.+-]")

EXTRACT_SCRIPT = Path(__file__).with_name("extract_vllm_schema.py")
EXTRACT_SECONDS = 300
"""Importing vLLM takes about 10 s, and minutes from a cold disk."""


@cache
def shipped_schemas(engine: EngineName = EngineName.VLLM) -> tuple[Schema, ...]:
    """The schemas of an engine that moorage comes with, the newest first; they are read once."""
    if engine not in DESCRIBED:
        return ()
    folder = files(f"moorage.engines.{engine}") / "schemas"
    texts = [path.read_text() for path in folder.iterdir() if path.name.endswith(".json")]
    schemas = map(Schema.model_validate_json, texts)
    return tuple(sorted(schemas, key=lambda schema: version_key(schema.version), reverse=True))


class SchemaStore:
    """All schemas of an engine that this machine has.

    Extracted ones are in the folder `schemas` of the home of moorage.
    """

    def __init__(self, home: Path, engine: EngineName = EngineName.VLLM) -> None:
        self._folder, self._engine = home / FOLDER, engine

    def of_version(self, version: str) -> Schema | None:
        """The schema of a version such as `0.32.0`, `v0.32.0` or `0.32.0+cpu`.

        An extracted one is preferred to the shipped one.
        """
        plain = version.removeprefix("v").partition("+")[0]
        if not plain:
            return None
        return self._load(plain) or next(
            (
                schema
                for schema in shipped_schemas(self._engine)
                if plain in (schema.version, *schema.also)
            ),
            None,
        )

    def of_image(self, *digests: str) -> Schema | None:
        """The schema that was extracted from an image, by any of its digests or its local id."""
        return next((found for digest in digests if digest and (found := self._load(digest))), None)

    def keep(self, schema: Schema, names: tuple[str, ...]) -> list[Path]:
        """Keep an extracted schema under a version or the digests of its image."""
        self._folder.mkdir(parents=True, exist_ok=True)
        paths = [self._path(name) for name in names]
        for path in paths:
            path.write_text(schema.model_dump_json(exclude_defaults=True))
        return paths

    def _load(self, name: str) -> Schema | None:
        try:
            schema = Schema.model_validate_json(self._path(name).read_text())
        except (OSError, ValidationError):
            # A schema of an older moorage is ignored; extracting it again replaces it.
            return None
        return schema if schema.engine == self._engine else None

    def _path(self, name: str) -> Path:
        return self._folder / f"{DIGEST.sub('-', name)}.json"


def check_early(spec: ModelSpec, fleet: Fleet, home: Path) -> None:
    """Raise `BAD_SPEC` for arguments that no possible version takes; reads files only, in ms."""
    wanted = spec.engine
    require_engine_of_command(wanted, ENGINES)
    stated = ENGINES.get(wanted.stated_name)
    if stated:
        _require_arguments(stated, wanted, in_container=wanted.runtime != RuntimeName.PROCESS)
    engine = stated if stated and stated.argument_rules else ENGINES[EngineName.VLLM]
    require_ports(spec, fleet, engine.joined_by(spec))
    # An image without an engine's name is vLLM's. Otherwise the fleet decides, and the check
    # follows after placement.
    name = wanted.stated_name
    is_meant = name == engine.name or (name == EngineName.AUTO and wanted.image)
    if not is_meant or not words_of(wanted) or engine.argument_rules is None:
        return
    if _has_own_command(fleet.engines.get(engine.name, EngineVersions()), wanted):
        refuse_secrets(wanted)
        return
    versions = versions_by_spec(wanted, engine, fleet)
    store, every = _known_to(engine, home)
    schemas = [store.of_version(engine.argument_version(version)) for version in versions]
    check_likely(wanted, engine.argument_rules, schemas, every)


def versions_by_spec(wanted: EngineSpec, engine: Engine, fleet: Fleet) -> tuple[str, ...]:
    """Versions that may run, the likeliest first, before a host is known; empty = not known."""
    configured = fleet.engines.get(engine.name, EngineVersions())
    default = configured.default_version or engine.default_version
    program = installed_program(engine)
    return likely_versions(wanted, default, program.version if program else None)


def check_placed(
    spec: ModelSpec, engine: Engine, host: HostSnapshot, image: Image | None, home: Path
) -> tuple[str, ...]:
    """Check the arguments for the engine and version that will run; gives warnings for a person.

    Without an image, it is the program that is installed on the host. Raises `BAD_SPEC`.
    """
    _require_arguments(engine, spec.engine, in_container=image is not None)
    own = _has_own_command(host.engine_versions(engine.name), spec.engine)
    if engine.argument_rules is None or own or not words_of(spec.engine):
        refuse_secrets(spec.engine)
        return ()
    store, every = _known_to(engine, home)
    schema = _schema_of(engine, host, image, store)
    return check_arguments(spec.engine, engine.argument_rules, schema, every)


def _require_arguments(engine: Engine, wanted: EngineSpec, *, in_container: bool) -> None:
    if wrong := engine.wrong_arguments(wanted, in_container=in_container):
        raise wrong


def check_on_cluster(spec: ModelSpec, home: Path) -> tuple[str, ...]:
    """Check vLLM's arguments as far as a Ray cluster's version is known; raises `BAD_SPEC`."""
    engine = ENGINES[EngineName.VLLM]
    if spec.engine.name == EngineName.CUSTOM or engine.argument_rules is None:
        return ()
    schema = schema_on_cluster(spec, home)
    return check_arguments(spec.engine, engine.argument_rules, schema, shipped_schemas)


def schema_on_cluster(spec: ModelSpec, home: Path) -> Schema:
    """The arguments of the version that the spec says a cluster has, else of the default one."""
    version = spec.engine.version or ENGINES[EngineName.VLLM].default_version
    return SchemaStore(home).of_version(version) or shipped_schemas()[0]


def schema_for_plan(
    engine: Engine, host: HostSnapshot, image: Image | None, home: Path
) -> Schema | None:
    """The arguments that a plan is written with; None for an engine that has its own parser.

    Where the version is not known it is the newest that moorage knows.
    """
    if engine.takes_arguments_of is None:
        return None
    store, every = _known_to(engine, home)
    return _schema_of(engine, host, image, store) or every()[0]


def _known_to(engine: Engine, home: Path) -> tuple[SchemaStore, Schemas]:
    """The schemas of an engine, or of the one whose arguments it takes."""
    name = engine.takes_arguments_of or engine.name
    return SchemaStore(home, name), partial(shipped_schemas, name)


def _has_own_command(configured: EngineVersions, wanted: EngineSpec) -> bool:
    """Whether a configured version is started by a line that other programs may read."""
    found = configured.find(wanted.version or "")
    return found is not None and bool(found[1].entrypoint or found[1].run_command)


def _schema_of(
    engine: Engine, host: HostSnapshot, image: Image | None, store: SchemaStore
) -> Schema | None:
    """A schema extracted from the image itself is preferred to that of its version."""
    if image is None:
        program = host.program(engine.name)
        return store.of_version(engine.argument_version(program.version)) if program else None
    version = engine.argument_version(image.engine_version)
    return store.of_image(*_digests(host, image)) or store.of_version(version)


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


def schema_of_image(image: str) -> tuple[Schema, tuple[str, ...]]:
    """The schema of the engine in an image of this host, from a container without a network.

    Returns:
        The schema, and the names of the image: its digests and its local id.

    Raises:
        Failure: `IMAGE_MISSING`, `RUNTIME_UNAVAILABLE`, or `LAUNCH_REFUSED` with its output.
    """
    known = DockerImages("local").find(image)
    if known is None:
        raise Failure(
            Cause.IMAGE_MISSING,
            f"{image} is not on this machine",
            suggestion=f"Pull it first: `docker pull {image}`.",
        )
    output = DockerRuntime("local").output_of(image, "python3", ["-c", EXTRACT_SCRIPT.read_text()])
    return _parse(output, image), (*known.digests, known.identity)


def schema_of_installed(engine: Engine) -> Schema:
    """The schema of the engine on this machine, run with the engine's own Python.

    Raises:
        Failure: `PROGRAM_MISSING`, or `LAUNCH_REFUSED` with what it says.
    """
    program = installed_program(engine)
    if program is None:
        raise Failure(Cause.PROGRAM_MISSING, f"{engine.program} is not installed on this machine")
    python = _python_of(Path(program.path))
    try:
        done = subprocess.run(
            [python, EXTRACT_SCRIPT],
            capture_output=True,
            text=True,
            timeout=EXTRACT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        detail = f"{program.path} gave no answer within {EXTRACT_SECONDS} s"
        raise Failure(Cause.LAUNCH_REFUSED, detail) from error
    except OSError as error:
        raise Failure(
            Cause.LAUNCH_REFUSED, f"{program.path}: {python}: {error.strerror}"
        ) from error
    if done.returncode != 0:
        raise Failure(Cause.LAUNCH_REFUSED, f"{program.path}: {done.stderr.strip()[-500:]}")
    return _parse(done.stdout, program.path)


def _python_of(program: Path) -> str:
    """The interpreter in the first line of a program, else the one in its folder."""
    first = program.read_bytes().partition(b"\n")[0].decode(errors="replace")
    named = first.removeprefix("#!").strip()
    if first.startswith("#!/") and "python" in named and " " not in named:
        return named
    return str(program.resolve().with_name("python3"))


def _parse(output: str, where: str) -> Schema:
    try:
        return Schema.model_validate_json(output)
    except ValidationError as error:
        raise Failure(Cause.LAUNCH_REFUSED, f"{where}: no schema: {output[-300:]!r}") from error
