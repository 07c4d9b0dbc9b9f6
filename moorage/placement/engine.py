"""The facts about engines that placement needs, and checks of a spec against them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from moorage.common.failures import Cause, Failure
from moorage.common.versions import version_key
from moorage.images.catalogue import official_version
from moorage.inventory.devices import DEVICE_VARIABLES, ORDERS
from moorage.inventory.fleet_engines import EngineVersion
from moorage.inventory.snapshot import FleetSnapshot
from moorage.memory.options import LoraOptions
from moorage.models.files import GGUF
from moorage.models.pin import AssetRole
from moorage.models.profile import ModelProfile
from moorage.models.source import Companion
from moorage.placement.parallelism import Parallelism, stated_parallelism
from moorage.spec import Distributed, EngineName, EngineSpec, Mode, ModelSpec, Policy, RuntimeName

SAFETENSORS = "safetensors"


class EngineTraits(ABC):
    """The facts that decide where an engine can run; `moorage.engines` implements the engines."""

    name: ClassVar[EngineName]
    program: ClassVar[str]
    """Command that starts the engine if it is installed on the host."""

    default_version: ClassVar[str]
    """Version whose image is used if the spec names no version."""

    accelerator_types: ClassVar[frozenset[str]]
    runs_on_cpu: ClassVar[bool]
    reserves_cache: ClassVar[bool] = False
    """Whether it allocates its whole KV cache at start, so its RAM on CPU can be predicted."""

    predictable: ClassVar[bool] = True
    """Whether its memory can be predicted; else it is stated, or estimated from file sizes."""

    automatic: ClassVar[bool] = True
    """Whether it is tried if the engine that `auto` selects fits nowhere."""

    spans_hosts: ClassVar[bool] = False
    """Whether one replica can run on several hosts together."""

    copies_share_experts: ClassVar[bool] = False
    """Whether its data-parallel copies divide the experts of a model among them."""

    formats: ClassVar[frozenset[str]] = frozenset({SAFETENSORS, "bin", "pt"})
    """Formats of weights that it loads."""

    divides_heads: ClassVar[bool] = True
    """Whether accelerators share the heads of each layer; else each of them holds whole layers."""

    offloads_layers: ClassVar[bool] = False
    """Whether some layers of a model can stay in RAM while the others are on accelerators."""

    ram_options: ClassVar[Mapping[str, str]] = {}
    """Options that keep bytes in RAM by no rule known here, with what they keep.

    Names of one option stand in one text.
    """

    adapter_format: ClassVar[str] = SAFETENSORS
    """Format of the LoRA adapters that it loads."""

    modes: ClassVar[frozenset[Mode]]
    modes_of_own_images: ClassVar[frozenset[Mode]] = frozenset()
    """Further modes, which need an image of the user's own in `engine.image`."""

    switches_of_own_images: ClassVar[frozenset[str]] = frozenset()
    """Arguments that need such an image too."""

    def serves(self, spec: ModelSpec, mode: Mode) -> bool:
        """Whether the engine, started as the spec says, serves a mode."""
        return mode in self.modes or (bool(spec.engine.image) and mode in self.modes_of_own_images)

    def argument_version(self, version: str) -> str:
        """The version by which an engine version's arguments are looked up; empty = unknown."""
        return version

    def services(self, spec: ModelSpec) -> tuple[str, ...]:
        """Names of the services that need further ports in addition to the serving port."""
        return ()

    def joined_by(self, spec: ModelSpec) -> Distributed:
        """The mechanism that joins the hosts of a replica, if the engine can span hosts."""
        return Distributed.NATIVE

    def parallelism(self, spec: ModelSpec) -> Parallelism | None:
        """The parallel sizes that the user's arguments state; None = they state none.

        Raises:
            Failure: `BAD_SPEC` when a size is not positive.
        """
        return stated_parallelism(spec.engine.arguments)

    def tensor_divisors(self, spec: ModelSpec) -> Mapping[str, int]:
        """Stated sizes that have to divide the tensor-parallel size, by option.

        Raises:
            Failure: `BAD_SPEC` when a size is not positive.
        """
        return {}

    def meeting_ports(self, spec: ModelSpec) -> int:
        """Consecutive ports that it derives from the one where its ranks meet; 0 = only that one.

        It takes them for ranks of one host too.
        """
        return 0

    @abstractmethod
    def ram_on_cpu(self, profile: ModelProfile) -> tuple[int, int]:
        """Estimated bytes of RAM on CPU, and of the KV cache in them; 0 = the engine decides."""

    def ram_on_accelerators(self, spec: ModelSpec, accelerator_type: str, claimed: int) -> int:
        """Bytes of RAM that the spec requests in addition to the accelerators of a seat."""
        return 0

    def server_bytes(self, spec: ModelSpec) -> int:
        """Bytes of each accelerator that a server takes as a process beside the engine's own."""
        return 0

    def ram_asleep(self, spec: ModelSpec, profile: ModelProfile) -> int:
        """Bytes of RAM that each seat on accelerators claims for its sleep."""
        return 0

    def memory_arguments(self, spec: ModelSpec, lora: LoraOptions | None) -> tuple[str, ...]:
        """Arguments that fields of the spec will add and that affect memory.

        `lora` describes the adapters counted from the fields `lora` and `lora_updates`.
        """
        return ()

    def vllm_versions(self, versions: Iterable[str]) -> tuple[str, ...]:
        """Versions of vLLM in these engine versions, "" = unknown; none = it contains no vLLM."""
        return ()


Engines = Mapping[EngineName, EngineTraits]
"""All engines by name, in the order in which `auto` tries them."""


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
    has, stated = official_version(engine), engine.version or ""
    if has and not (stated.startswith(has) or has.startswith(stated)):
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.version: {stated} is stated, but the image {engine.image} has {has}",
            suggestion="Leave `engine.version` out, or name the image of that version.",
        )


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
