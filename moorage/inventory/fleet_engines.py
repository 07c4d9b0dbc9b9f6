"""What a fleet file says about engines: their versions, each with image, entrypoint and command."""

from __future__ import annotations

import shlex
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints, field_validator

from moorage.common.input_value import InputValue
from moorage.common.versions import newest
from moorage.spec.patterns import IMAGE_PATTERN, VERSION_PATTERN
from moorage.spec.safe import no_secret_options, plain_words, starts_with_a_program

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
        description="What follows the entrypoint in place of the model, with the placeholders of"
        " `engine.command`, such as `{{model_path}} --quick`. One that starts with a program of"
        " its own, and no entrypoint, is the whole line. Derived arguments follow it.",
    )

    @field_validator("entrypoint", "run_command")
    @classmethod
    def _can_be_split(cls, line: str) -> str:
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise ValueError(f"cannot be split into words: {error}") from error
        plain_words(words)
        no_secret_options(words)
        return line

    @field_validator("entrypoint")
    @classmethod
    def _is_a_program(cls, line: str) -> str:
        starts_with_a_program(shlex.split(line))
        return line


class EngineVersions(InputValue):
    """The versions of one engine."""

    default_version: VersionName | None = Field(
        None,
        description="Version that is taken where a spec names none. Empty = the one that this"
        " release of moorage was tested with; of a custom engine the newest.",
    )
    versions: dict[VersionName, EngineVersion] = Field(
        {}, description="Versions with an image or a command of their own."
    )

    def find(self, asked: str) -> tuple[str, EngineVersion] | None:
        """The configured version that serves a wish (else the default), with its name."""
        wanted = asked or self.default_version or ""
        return (wanted, self.versions[wanted]) if wanted in self.versions else None

    def find_or_newest(self, asked: str) -> tuple[str, EngineVersion] | None:
        """The same, of an engine that has no versions but these: the newest stands in."""
        if found := self.find(asked):
            return found
        return self.find(newest(list(self.versions))) if self.versions else None
