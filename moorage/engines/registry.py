"""The table of engines, the choice of `auto`, and what a spec must say about its engine."""

from __future__ import annotations

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.common.versions import version_key
from moorage.engines.base import Engine
from moorage.engines.custom import Custom
from moorage.engines.transformers import Transformers
from moorage.engines.vllm import Vllm
from moorage.inventory.fleet_engines import EngineVersion, EngineVersions
from moorage.inventory.snapshot import FleetSnapshot
from moorage.models.profile import ModelProfile
from moorage.spec import EngineName, EngineSpec, ModelSpec, RuntimeName


def engine_versions(fleet: FleetSnapshot, engine: str) -> EngineVersions:
    """The fleet's configuration of an engine, which is the same on all hosts."""
    return fleet.hosts[0].engine_versions(engine)


def require_configured(spec: EngineSpec, fleet: FleetSnapshot) -> None:
    """Refuse a custom engine whose configuration in the fleet is incomplete.

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


ENGINES: dict[EngineName, Engine] = {
    engine.name: engine for engine in (Vllm(), Transformers(), Custom())
}


def choose_engine(
    spec: ModelSpec, profile: ModelProfile, fleet: FleetSnapshot
) -> tuple[Engine, Origin, str]:
    """The engine for a model: the one in the spec, else the one that suits fleet and mode.

    Returns:
        The engine, the origin of the choice, and its reason.

    Raises:
        Failure: `BAD_SPEC` when the spec has a command of an engine that it does not name.
    """
    require_engine_of_command(spec.engine)
    if spec.engine.name == EngineName.AUTO != spec.engine.stated_name:
        return ENGINES[spec.engine.stated_name], Origin.DERIVED, "command and image without a name"
    if spec.engine.name != EngineName.AUTO:
        return ENGINES[spec.engine.name], Origin.USER, "engine.name in the spec"
    vllm, transformers = ENGINES[EngineName.VLLM], ENGINES[EngineName.TRANSFORMERS]
    if spec.engine.image:
        return vllm, Origin.DERIVED, "an image is given; vLLM is what images usually hold"
    if profile.mode not in transformers.modes:
        return vllm, Origin.DERIVED, f"transformers does not serve {profile.mode}"
    kinds = {item.type for host in fleet.hosts for item in host.accelerators}
    usable = sorted(kinds & vllm.accelerator_types)
    if usable and spec.placement.accelerators != 0:
        return vllm, Origin.DERIVED, f"there are accelerators that it supports ({usable[0]})"
    return transformers, Origin.DERIVED, "no accelerator to use; transformers needs none"


def require_engine_of_command(wanted: EngineSpec) -> None:
    """Refuse a command line without the name of its engine.

    Raises:
        Failure: `BAD_SPEC`.
    """
    if wanted.command and wanted.stated_name == EngineName.AUTO:
        known = ", ".join(f"`{name}`" for name in ENGINES)
        raise Failure(
            Cause.BAD_SPEC,
            "engine.command: neither `engine.name` nor `engine.image` says what it starts",
            suggestion=f"Set `engine.name` ({known}), or `engine.image` for a server of your own.",
        )
