"""Chooses the engine if the spec says `auto`."""

from contextlib import suppress
from itertools import chain

from moorage.common.refusal import Refusal
from moorage.common.values import Origin
from moorage.inventory.snapshot import FleetSnapshot
from moorage.models.files import GGUF
from moorage.models.profile import ModelProfile
from moorage.placement.engine import SAFETENSORS, Engines, EngineTraits
from moorage.placement.engine_checks import require_engine_of_command
from moorage.placement.runtime import choose_runtime, hardware_on
from moorage.spec import EngineName, ModelSpec

ONLY_SGLANG = "vllm can be started on no accelerator of the fleet; sglang is installed"


def choose_engine(
    spec: ModelSpec, profile: ModelProfile, fleet: FleetSnapshot, engines: Engines
) -> tuple[EngineTraits, Origin, str]:
    """The engine for a model, and why: the spec's engine, else one that suits fleet and mode.

    Raises:
        Failure: `BAD_SPEC` when the spec has a command but names no engine.
    """
    require_engine_of_command(spec.engine, engines)
    if spec.engine.name == EngineName.AUTO != spec.engine.stated_name:
        return engines[spec.engine.stated_name], Origin.DERIVED, "command and image without a name"
    if spec.engine.name != EngineName.AUTO:
        return engines[spec.engine.name], Origin.USER, "engine.name in the spec"
    if profile.format == GGUF:
        return engines[EngineName.LLAMA_CPP], Origin.DERIVED, "the weights are GGUF"
    vllm, transformers = engines[EngineName.VLLM], engines[EngineName.TRANSFORMERS]
    if spec.engine.image:
        return vllm, Origin.DERIVED, "an image is given; vLLM is what images usually hold"
    if _takes_sglang(spec, profile, fleet, engines):
        return engines[EngineName.SGLANG], Origin.DERIVED, ONLY_SGLANG
    if profile.mode not in transformers.modes:
        return vllm, Origin.DERIVED, f"transformers does not serve {profile.mode}"
    kinds = {item.type for host in fleet.hosts for item in host.accelerators}
    usable = sorted(kinds & vllm.accelerator_types)
    if usable and spec.placement.accelerators != 0:
        return vllm, Origin.DERIVED, f"there are accelerators that it supports ({usable[0]})"
    return transformers, Origin.DERIVED, "no accelerator to use; transformers needs none"


def other_engines(
    spec: ModelSpec, profile: ModelProfile, first: EngineTraits, engines: Engines
) -> list[EngineTraits]:
    """Engines to try if the first choice fits nowhere; none if the spec names engine or image."""
    if spec.engine.name != EngineName.AUTO or spec.engine.image:
        return []
    return [
        other
        for other in engines.values()
        if other is not first
        and other.automatic
        and other.predictable
        and profile.mode in other.modes
        if other.spans_hosts or spec.placement.hosts in ("auto", 1)
        if (profile.format or SAFETENSORS) in other.formats
    ]


def _takes_sglang(
    spec: ModelSpec, profile: ModelProfile, fleet: FleetSnapshot, engines: Engines
) -> bool:
    """Whether SGLang can be started on an accelerator of the fleet, and vLLM on none.

    Images can be pulled, so missing images do not count. Engine arguments are taken to be vLLM's.
    """
    sglang = engines[EngineName.SGLANG]
    return (
        spec.placement.accelerators != 0
        and not spec.engine.arguments.words
        and profile.mode in sglang.modes
        and not _can_be_started(engines[EngineName.VLLM], spec, fleet)
        and _can_be_started(sglang, spec, fleet)
    )


def _can_be_started(engine: EngineTraits, spec: ModelSpec, fleet: FleetSnapshot) -> bool:
    """Whether an engine can be started on accelerators of at least one reachable host."""
    reachable = (host for host in fleet.hosts if not host.unreachable)
    for hardware in chain.from_iterable(map(hardware_on, reachable)):
        if hardware.chip.type in engine.accelerator_types:
            with suppress(Refusal):
                choose_runtime(spec, engine, hardware)
                return True
    return False
