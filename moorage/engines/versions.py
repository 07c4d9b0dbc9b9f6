"""Versions of an engine that have an image, a command or an entrypoint of their own."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from moorage.engines.command import filled
from moorage.engines.vllm.version import order
from moorage.failures import Cause, Failure
from moorage.values import Value

MODEL = "{{model_path}}"


class VersionSettings(Value):
    """What is configured for one version.

    Attributes:
        image: Its image; empty = by catalogue.
        run_command: Arguments, or a whole command line, with placeholders; empty = the engine's.
        entrypoint: Program and words before the arguments; empty = the engine's.
        built_in: Whether the engine's own command is right for it, whatever is configured.
    """

    image: str = ""
    run_command: str = ""
    entrypoint: str = ""
    built_in: bool = False


class EngineVersions(Value):
    """All versions that are configured.

    Attributes:
        versions: By version.
        default_version: Taken where none is asked for; empty = none.
        default_entrypoint: Of versions without one.
        closed: Whether only these versions exist: nothing else knows an image of this engine.
    """

    versions: dict[str, VersionSettings] = {}
    default_version: str = ""
    default_entrypoint: str = ""
    closed: bool = False

    def choose(self, wanted: str) -> tuple[str, VersionSettings | None]:
        """The version to run and its settings; None = nothing is configured for it.

        Raises:
            Failure: `BAD_SPEC` when a version is asked for that cannot exist.
        """
        version = wanted or self.default_version
        if version in self.versions or not self.closed or not self.versions:
            return version, self.versions.get(version)
        if wanted:
            raise Failure(
                Cause.BAD_SPEC,
                f"engine.version: {wanted} is not configured",
                suggestion=f"Take one of {', '.join(sorted(self.versions, key=order))}.",
            )
        newest = max(self.versions, key=order)
        return newest, self.versions[newest]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Words before the derived arguments: the entrypoint, then the model or the own command."""

    entrypoint: tuple[str, ...]
    start: tuple[str, ...]


def command_line(
    versions: EngineVersions,
    chosen: VersionSettings | None,
    entrypoint: tuple[str, ...],
    values: Mapping[str, str],
    environment: Mapping[str, str],
) -> CommandLine:
    """How a version is started.

    A run command is split before it is filled in. One that starts with a program of its own is a
    whole command line; nothing is put before it.

    Args:
        versions: All that is configured.
        chosen: The version's settings.
        entrypoint: Of the engine, such as `vllm serve`.
        values: Of the placeholders.
        environment: The user's variables.
    """
    own = shlex.split((chosen.entrypoint or versions.default_entrypoint) if chosen else "")
    if chosen is None or chosen.built_in or not chosen.run_command:
        return CommandLine(tuple(own) or entrypoint, (values["model_path"],))
    words = shlex.split(chosen.run_command)
    start = filled(words, values, environment)
    whole = not own and not words[0].startswith(("-", MODEL))
    return CommandLine(() if whole else tuple(own) or entrypoint, start)
