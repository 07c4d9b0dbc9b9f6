"""Schemas of engines' arguments: shipped with moorage, or extracted on this machine."""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from moorage.common.versions import version_key
from moorage.engines.schema.argument import Schema
from moorage.engines.schema.history import History, schemas_of
from moorage.spec import EngineName

FOLDER = "schemas"
DIGEST = re.compile(r"[^A-Za-z0-9.+-]")


@cache
def shipped_schemas(engine: EngineName = EngineName.VLLM) -> tuple[Schema, ...]:
    """Shipped schemas of an engine, newest first; read only once."""
    file = files("moorage.engines") / engine.replace(".", "_") / "schemas.json"
    if not file.is_file():
        return ()
    return schemas_of(History.model_validate_json(file.read_text()))


def shipped_schema(version: str, engine: EngineName) -> Schema | None:
    """The shipped schema that describes a version.

    Engines with build numbers, such as `11549`, have several builds a day: a build without a schema
    uses that of the nearest earlier build.
    """
    found = (one for one in shipped_schemas(engine) if _describes(one, version))
    return next(found, None)


def _describes(schema: Schema, version: str) -> bool:
    """Whether a schema describes a version, provided that no newer schema does."""
    if version.isdecimal():
        return version_key(schema.version) <= version_key(version)
    return schema.version == version


class SchemaStore:
    """All schemas of an engine that this machine has.

    Extracted schemas are in the folder `schemas` of the home of moorage.
    """

    def __init__(self, home: Path, engine: EngineName = EngineName.VLLM) -> None:
        self._folder, self._engine = home / FOLDER, engine

    def of_version(self, version: str) -> Schema | None:
        """The schema of a version such as `0.32.0`, `v0.32.0` or `0.32.0+cpu`.

        An extracted schema takes precedence over a shipped one.
        """
        plain = version.removeprefix("v").partition("+")[0]
        if not plain:
            return None
        return self._load(plain) or shipped_schema(plain, self._engine)

    def of_image(self, *digests: str) -> Schema | None:
        """Schema extracted from an image, by any of its digests or its local id."""
        return next((found for digest in digests if digest and (found := self._load(digest))), None)

    def keep(self, schema: Schema, names: tuple[str, ...]) -> list[Path]:
        """Save an extracted schema under a version or the digests of its image."""
        self._folder.mkdir(parents=True, exist_ok=True)
        paths = [self._path(name) for name in names]
        for path in paths:
            path.write_text(schema.model_dump_json(exclude_defaults=True))
        return paths

    def _load(self, name: str) -> Schema | None:
        try:
            schema = Schema.model_validate_json(self._path(name).read_text())
        except (OSError, ValidationError):
            # Ignore a schema of an older moorage; the next extraction replaces it.
            return None
        return schema if schema.engine == self._engine else None

    def _path(self, name: str) -> Path:
        return self._folder / f"{DIGEST.sub('-', name)}.json"
