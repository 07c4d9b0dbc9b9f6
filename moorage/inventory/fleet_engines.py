"""Engines in the fleet file: their versions, each with image, entrypoint and command."""

import shlex
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints, field_validator

from moorage.common.values import InputValue, Value
from moorage.common.versions import version_key
from moorage.spec import EngineName
from moorage.spec.patterns import (
    IMAGE_PATTERN,
    VERSION_PATTERN,
    check_program,
    check_secret_options,
    check_words,
)

VersionName = Annotated[str, StringConstraints(pattern=VERSION_PATTERN)]
ImageName = Annotated[str, StringConstraints(pattern=IMAGE_PATTERN)]


class EngineVersion(InputValue):
    """One version of an engine."""

    multiline: ClassVar[frozenset[str]] = frozenset({"entrypoint", "run_command"})

    image: ImageName | None = Field(
        None, description="Its container image. Empty = the official one of this version."
    )
    entrypoint: str = Field(
        "",
        description="Program and words in front of the arguments, such as `python3 -m acme.serve`."
        " Empty = the engine's own (`vllm serve`); a custom engine has none.",
    )
    run_command: str = Field(
        "",
        description="Arguments after the entrypoint in place of the model, with the placeholders"
        " of `engine.command`, such as `{{model_path}} --quick`. Without an entrypoint it begins"
        " with the program. Derived arguments follow.",
    )

    @field_validator("entrypoint", "run_command")
    @classmethod
    def _check_quoting(cls, line: str) -> str:
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise ValueError(f"cannot be split into words: {error}") from error
        check_words(words)
        check_secret_options(words)
        return line

    @field_validator("entrypoint")
    @classmethod
    def _check_entrypoint(cls, line: str) -> str:
        check_program(next(iter(shlex.split(line)), "x"))
        return line


class EngineVersions(InputValue):
    """The versions of one engine."""

    default_version: VersionName | None = Field(
        None,
        description="Version for specs that name none. Empty = the one that this release of"
        " moorage was tested with; for a custom engine the newest.",
    )
    versions: dict[VersionName, EngineVersion] = Field(
        {}, description="Versions with their own image or command."
    )

    def find(self, version: str) -> tuple[str, EngineVersion] | None:
        """A configured version and its name; `default_version` where `version` is empty."""
        wanted = version or self.default_version or ""
        return (wanted, self.versions[wanted]) if wanted in self.versions else None

    def find_or_newest(self, version: str) -> tuple[str, EngineVersion] | None:
        """Like `find`, for a custom engine: the newest configured version is the fallback."""
        if found := self.find(version):
            return found
        return self.find(max(self.versions, key=version_key)) if self.versions else None


class CatalogueRow(Value):
    """Where an image is published for one kind of hardware.

    Attributes:
        accelerator_type: `cuda`, `rocm`, ... or `cpu`.
        template: Reference, with `{version}` where one row stands for many versions.
        publisher: Who builds it, as reasons of a choice name it.
        runtime: Version of the accelerator runtime in the image, such as `12.9`; empty = unknown,
            or no runtime.
        variant: Chip family that the image is built for, where a runtime has several.
        capability: Least compute capability of an NVIDIA GPU that the image has programs for;
            empty = any, or unknown.
        since: First engine version of the row; empty = no lower limit.
        before: First engine version after the row; empty = no upper limit.
        deprecated: Chosen only when a spec names its version.
    """

    engine: EngineName
    accelerator_type: str
    architectures: tuple[str, ...]
    template: str
    publisher: str
    runtime: str = ""
    variant: str = ""
    capability: str = ""
    since: str = ""
    before: str = ""
    deprecated: bool = False

    @property
    def only_version(self) -> str:
        """The engine version of a row for a single image; empty = the row covers many versions."""
        return "" if "{version}" in self.template else self.since

    def has(self, version: str) -> bool:
        """Whether this row has an image of an engine version."""
        if self.only_version:
            return version == self.only_version
        key = version_key(version)
        early = bool(self.since) and key < version_key(self.since)
        return not early and not (self.before and key >= version_key(self.before))

    def reference(self, version: str) -> str:
        """The image of an engine version."""
        return self.template.format(version=version)
