"""Schemas of engines' arguments: shipped ones, and those that were extracted here."""

from __future__ import annotations

import re
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from moorage.common.versions import version_key
from moorage.engines.schema.argument import Schema

SHIPPED = files("moorage.engines.vllm") / "schemas"
FOLDER = "schemas"
DIGEST = re.compile(r"[^A-Za-z0-9.+-]")


class SchemaStore:
    """All schemas of vLLM that this machine has.

    Args:
        home: Root of what moorage keeps; extracted schemas are in its folder `schemas`.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def of_version(self, version: str) -> Schema | None:
        """The schema of a version; one that was extracted here wins over the shipped one.

        Args:
            version: As users and images write it: `0.32.0`, `v0.32.0`, `0.32.0+cpu`.
        """
        plain = version.removeprefix("v").partition("+")[0]
        if not plain:
            return None
        return self._kept(plain) or next(
            (schema for schema in self._shipped if plain in (schema.version, *schema.also)), None
        )

    def of_image(self, *digests: str) -> Schema | None:
        """The schema that was extracted from an image, by any of its digests or its local id."""
        return next((found for digest in digests if digest and (found := self._kept(digest))), None)

    def every(self) -> list[Schema]:
        """All shipped schemas, the newest first."""
        return self._shipped

    def keep(self, schema: Schema, names: tuple[str, ...]) -> list[Path]:
        """Keep an extracted schema under a version or the digests of its image."""
        self._folder.mkdir(parents=True, exist_ok=True)
        paths = [self._path(name) for name in names]
        for path in paths:
            path.write_text(schema.model_dump_json(exclude_defaults=True))
        return paths

    @cached_property
    def _shipped(self) -> list[Schema]:
        texts = [path.read_text() for path in SHIPPED.iterdir() if path.name.endswith(".json")]
        schemas = map(Schema.model_validate_json, texts)
        return sorted(schemas, key=lambda schema: version_key(schema.version), reverse=True)

    def _kept(self, name: str) -> Schema | None:
        try:
            return Schema.model_validate_json(self._path(name).read_text())
        except (OSError, ValidationError):
            # One of an older moorage counts as none; extracting it again replaces it.
            return None

    def _path(self, name: str) -> Path:
        return self._folder / f"{DIGEST.sub('-', name)}.json"
