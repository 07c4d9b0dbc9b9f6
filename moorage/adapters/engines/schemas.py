"""Schemas of engines' arguments: shipped, or extracted on this machine from the engine itself."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from moorage.adapters.docker.containers import DockerRuntime
from moorage.adapters.docker.images import DockerImages
from moorage.adapters.hosts.local_host import installed_program
from moorage.common.failures import Cause, Failure
from moorage.common.versions import version_key
from moorage.engines.base import Engine
from moorage.engines.schema.argument import Schema

SHIPPED = files("moorage.engines.vllm") / "schemas"
FOLDER = "schemas"
DIGEST = re.compile(r"[^A-Za-z0-9.+-]")

EXTRACT_SCRIPT = Path(__file__).with_name("extract_vllm_schema.py")
EXTRACT_SECONDS = 300
"""Importing vLLM takes about 10 s, and minutes from a cold disk."""


@cache
def shipped_schemas() -> tuple[Schema, ...]:
    """The schemas that moorage comes with, the newest first; they are read once."""
    texts = [path.read_text() for path in SHIPPED.iterdir() if path.name.endswith(".json")]
    schemas = map(Schema.model_validate_json, texts)
    return tuple(sorted(schemas, key=lambda schema: version_key(schema.version), reverse=True))


class SchemaStore:
    """All schemas of vLLM that this machine has.

    Args:
        home: The home of moorage; extracted schemas are in its folder `schemas`.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def of_version(self, version: str) -> Schema | None:
        """The schema of a version; an extracted one is preferred to the shipped one.

        Args:
            version: As users and images write it: `0.32.0`, `v0.32.0`, `0.32.0+cpu`.
        """
        plain = version.removeprefix("v").partition("+")[0]
        if not plain:
            return None
        return self._load(plain) or next(
            (schema for schema in shipped_schemas() if plain in (schema.version, *schema.also)),
            None,
        )

    def of_image(self, *digests: str) -> Schema | None:
        """The schema that was extracted from an image, by any of its digests or its local id."""
        return next((found for digest in digests if digest and (found := self._load(digest))), None)

    def every(self) -> tuple[Schema, ...]:
        """All shipped schemas, the newest first."""
        return shipped_schemas()

    def keep(self, schema: Schema, names: tuple[str, ...]) -> list[Path]:
        """Keep an extracted schema under a version or the digests of its image."""
        self._folder.mkdir(parents=True, exist_ok=True)
        paths = [self._path(name) for name in names]
        for path in paths:
            path.write_text(schema.model_dump_json(exclude_defaults=True))
        return paths

    def _load(self, name: str) -> Schema | None:
        try:
            return Schema.model_validate_json(self._path(name).read_text())
        except (OSError, ValidationError):
            # A schema of an older moorage is ignored; extracting it again replaces it.
            return None

    def _path(self, name: str) -> Path:
        return self._folder / f"{DIGEST.sub('-', name)}.json"


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
