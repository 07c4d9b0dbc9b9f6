"""Checks of a spec against the facts about its engine, before anything is placed."""

from collections.abc import Iterable

from moorage.common.failures import Cause, Failure
from moorage.common.versions import version_key
from moorage.images.catalogue import official_version
from moorage.inventory.devices import DEVICE_VARIABLES, ORDERS
from moorage.inventory.fleet_engines import EngineVersion
from moorage.inventory.snapshot import FleetSnapshot
from moorage.models.files import GGUF
from moorage.models.pin import AssetRole
from moorage.models.profile import ModelProfile
from moorage.models.source import Companion
from moorage.placement.engine import SAFETENSORS, EngineTraits
from moorage.spec import EngineName, EngineSpec, Mode, ModelSpec, Policy, RuntimeName


def require_engine_of_command(wanted: EngineSpec, names: Iterable[EngineName]) -> None:
    """Raise `BAD_SPEC` if the spec has a command line but names no engine that it belongs to."""
    if wanted.command and wanted.stated_name == EngineName.AUTO:
        known = ", ".join(f"`{name}`" for name in names)
        raise Failure(
            Cause.BAD_SPEC,
            "engine.command: neither `engine.name` nor `engine.image` says what it starts",
            suggestion=f"Set `engine.name` ({known}), or `engine.image` for a server of your own.",
        )


OWNED_ARGUMENTS = {
    "--port": "`port`",
    "--host": "`bind` of the host in the fleet file",
    "--served-model-name": "`name`",
}
"""Arguments that determine the engine's address and name, with the field to use instead."""


def refuse_owned_arguments(spec: EngineSpec) -> None:
    """Raise `BAD_SPEC` for arguments that a field of the spec or the fleet file replaces."""
    for flag, field in OWNED_ARGUMENTS.items():
        if spec.arguments.has(flag):
            raise Failure(
                Cause.BAD_SPEC,
                f"engine.args: {flag} would move the engine away from where it is looked for",
                suggestion=f"Set {field} instead.",
            )


def refuse_other_version(engine: EngineSpec) -> None:
    """Raise `BAD_SPEC` for a version that the engine's official image, by its tag, does not have.

    Arguments and memory would be those of another version than the one that runs. The names of
    versions in the fleet file, such as `0.26.0-ours`, may begin with the number.
    """
    has, stated = official_version(engine), engine.version
    if has and stated and stated != has and not _is_of(stated, has):
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.version: {stated} is stated, but the image {engine.image} has {has}",
            suggestion="Leave `engine.version` out, or name the image of that version.",
        )


def _is_of(stated: str, number: str) -> bool:
    """Whether a stated version has a number: `0.26` and `0.26.0-ours` have 0.26.0."""
    return number.startswith(f"{stated}.") or stated.startswith((f"{number}-", f"{number}+"))


def refuse_owned_variables(spec: ModelSpec) -> None:
    """Raise `BAD_SPEC` for variables by which the engine would see accelerators of other claims."""
    written = {**dict.fromkeys(spec.secrets, ""), **spec.engine.env}
    owned = sorted(
        name for name in DEVICE_VARIABLES & written.keys() if ORDERS.get(name) != written[name]
    )
    if owned and spec.placement.accelerators != 0:
        field = "engine.env" if owned[0] in spec.engine.env else "secrets"
        raise Failure(
            Cause.BAD_SPEC,
            f"{field}: {owned[0]} would move the engine away from the accelerators it claims",
            suggestion="List them in `placement.accelerators` instead, such as `[gpu-1:cuda:0]`.",
        )


def require_format(engine: EngineTraits, profile: ModelProfile) -> None:
    """Raise `BAD_SPEC` if the engine cannot load the format of the model's weights."""
    if engine.predictable and profile.format and profile.format not in engine.formats:
        able = " or ".join(sorted(engine.formats))
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.name: {engine.name} does not load {profile.format} weights, only {able}",
            suggestion="Choose another engine, or a source with such weights (see `files`).",
        )


def require_counted_ram(engine: EngineTraits, spec: ModelSpec) -> None:
    """Raise `BAD_SPEC` for options that keep an unknown amount in RAM, unless RAM is stated.

    The kernel would end the engine, or its neighbours, once the host has no RAM left. Without
    accelerators the claim holds everything, and the policy `baseline` counts no RAM.
    """
    placement = spec.placement
    counted = placement.ram != "auto" or placement.accelerators == 0
    if counted or placement.policy == Policy.BASELINE:
        return
    for names, kept in engine.ram_options.items():
        first, *others = names.split()
        values = spec.engine.arguments.values(first, *others)
        if values is not None and values not in (("0",), ("0.0",)):
            raise Failure(
                Cause.BAD_SPEC,
                f"engine.args: {first} keeps {kept} in RAM, and no rule says how much",
                suggestion="Reserve it on each host with `placement.ram`, or leave it out."
                " `memory.claim` says what each accelerator still takes.",
            )


ADAPTER_ADVICE = {
    GGUF: "llama.cpp's convert_lora_to_gguf.py makes a GGUF file of an adapter of PEFT.",
    SAFETENSORS: "Name the adapter as PEFT saves it, with adapter_model.safetensors.",
}


def require_adapter_format(engine: EngineTraits, companions: Iterable[Companion]) -> None:
    """Raise `BAD_SPEC` for LoRA adapters in a format that the engine cannot load."""
    for one in companions:
        found, able = one.model.weights.family, engine.adapter_format
        if one.role == AssetRole.ADAPTER and found != able:
            raise Failure(
                Cause.BAD_SPEC,
                f"lora: {one.name} is {found}; {engine.name} loads {able} adapters only",
                suggestion=ADAPTER_ADVICE[able],
            )


OTHER_ENGINE = "Choose an engine that serves this mode, or set `mode`."

PICTURES = "Name an image with vllm-omni in `engine.image`, or take a custom engine."


def require_mode(engine: EngineTraits, spec: ModelSpec, mode: Mode) -> None:
    """Raise `BAD_SPEC` if the engine, as the spec says, does not serve the model's mode."""
    official = not spec.engine.image and spec.engine.runtime != RuntimeName.PROCESS
    for switch in engine.switches_of_own_images if official else ():
        if spec.engine.arguments.switch(switch):
            detail = f"engine.args: {switch} needs another image than the official one"
            raise Failure(Cause.BAD_SPEC, detail, suggestion=PICTURES)
    if not engine.serves(spec, mode):
        modes = ", ".join(sorted(engine.modes))
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.name: {engine.name} does not serve {mode}, only {modes}",
            suggestion=PICTURES if mode == Mode.IMAGE_GENERATION else OTHER_ENGINE,
        )


def require_configured(spec: EngineSpec, fleet: FleetSnapshot) -> None:
    """Raise `BAD_SPEC` for a named custom engine whose configuration in the fleet is incomplete."""
    if not spec.custom:
        return
    versions = fleet.engine_versions(spec.custom)
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
