"""What a spec must say about its engine, held against what the fleet configures."""

from __future__ import annotations

from moorage.common.failures import Cause, Failure
from moorage.common.versions import version_key
from moorage.inventory.fleet_engines import EngineVersion, EngineVersions
from moorage.inventory.snapshot import FleetSnapshot
from moorage.spec import EngineSpec, RuntimeName


def engine_versions(fleet: FleetSnapshot, engine: str) -> EngineVersions:
    """What the fleet says about an engine; all of its hosts say the same."""
    return fleet.hosts[0].engine_versions(engine)


def require_configured(spec: EngineSpec, fleet: FleetSnapshot) -> None:
    """Refuse a custom engine by name that the fleet does not configure whole.

    Raises:
        Failure: `BAD_SPEC`.
    """
    if not spec.custom:
        return
    versions = engine_versions(fleet, spec.custom)
    if not versions.versions:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.custom: {spec.custom} has no versions in `engines` of the fleet file",
            suggestion=f"Add `engines: {{{spec.custom}: {{versions: ...}}}}` to the fleet file.",
        )
    if spec.version and spec.version not in versions.versions:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.version: {spec.version} of {spec.custom} is not configured",
            suggestion=f"Take one of {', '.join(sorted(versions.versions, key=version_key))}.",
        )
    found = versions.find_or_newest(spec.version or "")
    if found:
        _require_whole(spec, *found)


def _require_whole(spec: EngineSpec, name: str, version: EngineVersion) -> None:
    image = spec.image or version.image or spec.runtime == RuntimeName.PROCESS
    command = spec.command or spec.entrypoint or version.entrypoint or version.run_command
    for field, there in (("image", image), ("run_command", command)):
        if not there:
            raise Failure(
                Cause.BAD_SPEC,
                f"engine.custom: {spec.custom} {name} has no {field} in the fleet file",
                suggestion=f"Add `{field}` there, or state it in the spec.",
            )
