"""The terms that the rules derive from a spec and a profile; every strategy reads them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from moorage.common.units import GIB, MIB
from moorage.inventory.snapshot import Accelerator
from moorage.models.profile import ModelProfile
from moorage.placement.baseline.parameters import (
    ErrorClass,
    Parameters,
    contradiction,
    is_native,
    parallel_sizes,
    require_whole_ranks,
    world_size,
)
from moorage.placement.parallelism import ParallelSizes
from moorage.placement.placement import HostShare
from moorage.spec import ModelSpec, Policy

ACTIVATION_FACTOR = 1.2
SPEECH_FACTOR = 3
LLM_OVERHEAD = 2 * GIB
OTHER_OVERHEAD = 512 * MIB

UTILIZATION = 0.9
FLAG = "gpu-memory-utilization"
GENERATING = frozenset({"llm", "speech_to_text"})
POOLING_WITH_SHARE = frozenset(
    {"Qwen3ForCausalLM", "Qwen3ForSequenceClassification", "Qwen3VLForConditionalGeneration"}
)
"""Architectures for which the engine takes its share even if they embed or rank."""

WITHOUT_CONFIG = frozenset({"image", "text_to_speech"})
"""Categories for which the peer does not read the model's configuration."""

Key = tuple[str, str, int]
"""An accelerator: type, host, index."""


def listed_accelerators(spec: ModelSpec) -> tuple[Key, ...]:
    """Accelerators that the user listed; empty = none."""
    wanted = spec.placement.accelerators
    listed = [one.rsplit(":", 2) for one in wanted] if isinstance(wanted, tuple) else []
    return tuple((kind, host, int(index)) for host, kind, index in listed)


@dataclass(frozen=True, slots=True)
class Terms:
    """The model to place, in the terms of the rules.

    Attributes:
        claim: Bytes of accelerator memory that a replica needs in all.
        wanted: Accelerators of each replica; 0 = open.
        listed: Accelerators that the user listed; empty = any.
        counts: Numbers that tensor-parallel ranks have to divide: error class, number, name.
        native: Whether vLLM itself joins hosts (else Ray does).
        utilization: The share of each accelerator that the engine takes; 0 = as much as it needs.
    """

    spec: ModelSpec
    claim: int
    wanted: int
    listed: tuple[Key, ...]
    counts: tuple[tuple[ErrorClass, int, str], ...]
    sizes: ParallelSizes
    native: bool
    utilization: float = 0.0

    @property
    def ram(self) -> int:
        """Bytes of RAM that each host must have free; a cache sized by ratio needs none."""
        cache = self.spec.extended_kv_cache
        return int(cache.ram or 0) if cache else 0

    def bytes_of(self, item: Accelerator, otherwise: int) -> int:
        """Bytes that the engine takes of an accelerator; `otherwise` if it takes no share."""
        return int(item.memory_total * self.utilization) if self.utilization > 0 else otherwise

    def obstacle(self, ranks: int | None) -> tuple[ErrorClass, str] | None:
        """The first of `counts` that a number of ranks does not divide, with a message.

        KV heads are not checked; the vocabulary is, although vLLM pads it (the peer's defect 11).
        """
        for error, number, name in self.counts:
            if ranks and number % ranks:
                return error, f"{number} {name} cannot be split into {ranks} ranks"
        return None

    def allows(self, ranks: int) -> bool:
        """Whether a number of ranks divides all `counts`; zero ranks never do."""
        return ranks > 0 and self.obstacle(ranks) is None

    def share(self, host: str, indexes: Sequence[int], memory: Mapping[int, int]) -> HostShare:
        """Accelerator memory and RAM that a replica takes of a host."""
        order, cache = tuple(sorted(indexes)), self.spec.extended_kv_cache
        ratio = cache.ratio if cache else 0
        return HostShare(
            host=host,
            accelerators=order,
            accelerator_bytes=tuple(memory.get(index, 0) for index in order),
            ram_bytes=self.ram or int(sum(memory.values()) * ratio),
        )


def by_baseline_rules(spec: ModelSpec) -> bool:
    """Whether the peer's rules place the model; they know accelerators only."""
    return spec.placement.policy == Policy.BASELINE and spec.placement.accelerators != 0


def read_terms(spec: ModelSpec, profile: ModelProfile, adapter_bytes: int = 0) -> Terms:
    """The terms of a spec.

    Raises:
        Failure: `BAD_SPEC` when the spec contradicts itself or the model; `named` has the class.
    """
    parameters, wanted = Parameters(spec.engine.arguments), spec.placement.accelerators
    sizes = parallel_sizes(parameters, wanted if isinstance(wanted, int) else None)
    listed = listed_accelerators(spec)
    terms = Terms(
        spec=spec,
        claim=memory_claim(spec, profile, adapter_bytes),
        wanted=_wanted(spec, len(listed), world_size(sizes, parameters)),
        listed=listed,
        counts=_counts(profile, parameters),
        sizes=sizes,
        native=is_native(spec.engine.version, parameters),
    )
    if obstacle := terms.obstacle(sizes.tensor):
        raise contradiction(obstacle[0], f"{obstacle[1]}: adjust the size")
    if terms.native:
        require_whole_ranks(sizes)
    return replace(terms, utilization=_utilization(profile, parameters))


def memory_claim(spec: ModelSpec, profile: ModelProfile, adapter_bytes: int = 0) -> int:
    """Bytes of accelerator memory that a replica needs in all, for an LLM 1.2 x weights + 2 GiB.

    A stated claim takes precedence. Cache, context and quantization do not count.
    """
    categories = profile.categories
    if spec.memory.claim is not None:
        return int(spec.memory.claim)
    if "image" in categories:
        return profile.weight_bytes
    factor = SPEECH_FACTOR if "text_to_speech" in categories else ACTIVATION_FACTOR
    overhead = LLM_OVERHEAD if not categories or "llm" in categories else OTHER_OVERHEAD
    return int((profile.weight_bytes + adapter_bytes) * factor) + overhead


def _wanted(spec: ModelSpec, listed: int, world: int | None) -> int:
    """Accelerators of one replica; 0 = open."""
    count = listed and (spec.placement.accelerators_per_replica or listed)
    if world is None:
        return count
    if count and count != world:
        raise contradiction(
            ErrorClass.COUNT,
            f"{count} accelerators are selected for a replica, its parallel sizes take {world}",
        )
    return world


def _reads_config(profile: ModelProfile, parameters: Parameters) -> bool:
    """Whether heads, vocabulary and architectures count."""
    return not (WITHOUT_CONFIG & set(profile.categories) or parameters.switch("omni"))


def _counts(
    profile: ModelProfile, parameters: Parameters
) -> tuple[tuple[ErrorClass, int, str], ...]:
    if not _reads_config(profile, parameters):
        return ()
    vision_heads = None if parameters.switch("language-model-only") else profile.vision_heads
    table = (
        (ErrorClass.HEADS, profile.attention_heads, "attention heads"),
        (ErrorClass.VISION_HEADS, vision_heads, "vision heads"),
        (ErrorClass.VOCABULARY, profile.vocab_size, "tokens of the vocabulary"),
    )
    return tuple((error, number, name) for error, number, name in table if number)


def _utilization(profile: ModelProfile, parameters: Parameters) -> float:
    written = parameters.value(FLAG)
    if not written:
        generates = not profile.categories or GENERATING.intersection(profile.categories)
        pools = POOLING_WITH_SHARE.intersection(profile.architectures)
        takes_share = generates or (pools and _reads_config(profile, parameters))
        return UTILIZATION if takes_share else 0.0
    try:
        share = float(written)
    except ValueError:
        share = math.nan
    if not math.isfinite(share):
        raise contradiction(ErrorClass.UNREADABLE, f"--{FLAG} {written} is not a number")
    return share
