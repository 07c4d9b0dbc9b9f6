"""The table of engines, and which one `auto` means."""

from __future__ import annotations

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.base import Engine
from moorage.engines.custom import Custom
from moorage.engines.transformers import Transformers
from moorage.engines.vllm import Vllm
from moorage.inventory.snapshot import FleetSnapshot
from moorage.models.profile import ModelProfile
from moorage.spec import EngineName, EngineSpec, ModelSpec

ENGINES: dict[EngineName, Engine] = {
    engine.name: engine for engine in (Vllm(), Transformers(), Custom())
}


def choose_engine(
    spec: ModelSpec, profile: ModelProfile, fleet: FleetSnapshot
) -> tuple[Engine, Origin, str]:
    """The engine for a model: the one asked for, else the one that suits fleet and mode.

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
    """Refuse a command line of an engine that nobody names: it fits one engine, and no other.

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
