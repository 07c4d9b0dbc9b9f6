"""How a seat's engine is started: the first words of its command line, and where they come from."""

from __future__ import annotations

from moorage.common.values import Origin
from moorage.engines.launch import Flag
from moorage.engines.request import LaunchRequest
from moorage.engines.seat import placeholders
from moorage.engines.versions import CommandLine, command_line
from moorage.inventory.fleet_engines import EngineVersion
from moorage.spec import EngineName

Configured = tuple[str, EngineVersion]


def configured_version(request: LaunchRequest, engine: EngineName) -> Configured | None:
    """What the fleet says about the version that will run, with its name; None = nothing.

    An installed program is started as it is: what is configured is for a version's image. A custom
    engine is nothing but what is configured.
    """
    spec = request.spec.engine
    versions = request.host.engine_versions(spec.custom or engine)
    if spec.custom:
        return versions.find_or_newest(spec.version or "")
    version = request.image.engine_version if request.image else ""
    return (version, versions.versions[version]) if version in versions.versions else None


def start_flags(request: LaunchRequest, engine: EngineName, own: Flag) -> tuple[Flag, ...]:
    """Entrypoint and model, as spec and fleet have them.

    Args:
        request: The seat.
        engine: The engine.
        own: The engine's own way: its program and words, then the model.
    """
    spec, found = request.spec.engine, configured_version(request, engine)
    version = found[1] if found else None
    if version is None and spec.entrypoint is None:
        return (own,)
    line = command_line(
        CommandLine(own.tokens[:-1], own.tokens[-1:]),
        version,
        placeholders(request),
        spec.env,
        spec.entrypoint or (),
    )
    where = f"of {spec.custom or engine} {found[0]} in the fleet file" if found else ""
    entry, start = own.model_copy(update={"reason": "the engine's own program"}), own
    if spec.entrypoint:
        entry = _by_user("engine.entrypoint", written=True)
    elif version and version.entrypoint:
        entry = _by_user(f"entrypoint {where}")
    if version and version.run_command:
        start = _by_user(f"run_command {where}")
    flags = ((entry, line.entrypoint), (start, line.start))
    return tuple(flag.model_copy(update={"tokens": words}) for flag, words in flags if words)


def _by_user(reason: str, *, written: bool = False) -> Flag:
    return Flag(tokens=(), origin=Origin.USER, reason=reason, written=written)
