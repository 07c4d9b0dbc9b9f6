"""The facts about engines that placement needs."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from moorage.memory.options import LoraOptions
from moorage.models.profile import ModelProfile
from moorage.placement.parallelism import Parallelism, stated_parallelism
from moorage.spec import Distributed, EngineName, Mode, ModelSpec

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
