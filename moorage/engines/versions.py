"""How a version of an engine is started: its own way, or what is configured for it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from moorage.engines.command import filled
from moorage.inventory.fleet_engines import EngineVersion


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Words before the derived arguments: the entrypoint, then the model or the own command."""

    entrypoint: tuple[str, ...]
    start: tuple[str, ...]


def command_line(
    engine: CommandLine,
    chosen: EngineVersion | None,
    values: Mapping[str, str],
    environment: Mapping[str, str],
    entrypoint: tuple[str, ...] = (),
) -> CommandLine:
    """How a version is started.

    A run command is split before it is filled in. One that starts with a program of its own is a
    whole command line; nothing is put before it.

    Args:
        engine: The engine's own way, such as `vllm serve` and the model.
        chosen: What is configured for the version; None = nothing.
        values: Of the placeholders.
        environment: The user's variables.
        entrypoint: Of the spec; it wins over the version's.
    """
    own = entrypoint or tuple(shlex.split(chosen.entrypoint if chosen else ""))
    own = filled(own, values, environment)
    if chosen is None or not chosen.run_command:
        return CommandLine(own or engine.entrypoint, engine.start)
    words = shlex.split(chosen.run_command)
    whole = not own and not words[0].startswith(("-", "{{model_path}}"))
    start = filled(words, values, environment)
    return CommandLine(() if whole else own or engine.entrypoint, start)
