"""What a request comes to, worked out once and read by every strategy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moorage.placement.baseline.estimate import memory_claim, ram_claim, ram_need
from moorage.placement.baseline.parallelism import (
    is_native,
    parallel_sizes,
    require_whole_ranks,
    wanted_accelerators,
    world_size,
)
from moorage.placement.baseline.parameters import Parameters
from moorage.placement.baseline.refusal import ErrorClass, Refusal, RefusedRequest
from moorage.placement.baseline.request import BaselineRequest
from moorage.placement.candidate import Share
from moorage.placement.parallelism import ParallelSizes

DEFAULT = 0.9
FLAG = "gpu-memory-utilization"
GENERATING = frozenset({"llm", "speech_to_text"})
POOLING_WITH_SHARE = frozenset(
    {"Qwen3ForCausalLM", "Qwen3ForSequenceClassification", "Qwen3VLForConditionalGeneration"}
)
"""Architectures for which vLLM takes its share even when they embed or rank."""

WITHOUT_CONFIG = frozenset({"image", "text_to_speech"})
"""Categories for which the peer does not read the model's configuration."""


def utilization(request: BaselineRequest, parameters: Parameters) -> float:
    """The share of each accelerator, 0.9 by default; 0 = the engine takes what it needs.

    Raises:
        RefusedRequest: `UNREADABLE` when the user's value is no number.
    """
    written = parameters.value(FLAG)
    if not written:
        return DEFAULT if _takes_share(request, parameters) else 0.0
    try:
        share = float(written)
    except ValueError:
        share = math.nan
    if not math.isfinite(share):
        raise RefusedRequest(ErrorClass.UNREADABLE, f"--{FLAG} {written} is not a number")
    return share


def reads_config(request: BaselineRequest, parameters: Parameters) -> bool:
    """Whether heads, vocabulary and architectures are known to the decision at all."""
    return not (WITHOUT_CONFIG & set(request.categories) or parameters.switch("omni"))


def _takes_share(request: BaselineRequest, parameters: Parameters) -> bool:
    if not request.categories or GENERATING & set(request.categories):
        return True
    known = reads_config(request, parameters)
    return known and bool(POOLING_WITH_SHARE & set(request.architectures))


@dataclass(frozen=True, slots=True)
class Divisibility:
    """What tensor parallelism has to divide; 0 or None = unknown, never in the way.

    KV heads are not among it, and the vocabulary is, although vLLM pads it (the peer's defect 11).
    """

    heads: int | None = None
    vision_heads: int | None = None
    vocabulary: int | None = None

    def allows(self, ranks: int) -> bool:
        """Whether a number of ranks divides everything; zero ranks never do."""
        return bool(ranks) and self.obstacle(ranks) is None

    def obstacle(self, ranks: int | None) -> Refusal | None:
        """The first thing that a number of ranks does not divide."""
        if not ranks:
            return None
        for error, amount, name in (
            (ErrorClass.HEADS, self.heads, "attention heads"),
            (ErrorClass.VISION_HEADS, self.vision_heads, "vision heads"),
            (ErrorClass.VOCABULARY, self.vocabulary, "tokens of the vocabulary"),
        ):
            if amount and amount % ranks:
                return Refusal(error, f"{amount} {name} cannot be split into {ranks} ranks")
        return None


@dataclass(frozen=True, slots=True)
class Terms:
    """A request with everything that follows from it.

    Attributes:
        request: The request.
        claim: Bytes of accelerator memory that a replica needs in all.
        ram: Bytes of RAM that each of its hosts must have free; 0 = not looked at.
        utilization: The part of each accelerator that the engine takes; 0 = what it needs.
        wanted: Accelerators of a replica; 0 = open.
        divisibility: Into how many ranks the model can be split.
        sizes: The parallel sizes that the user demands.
        native: Whether vLLM itself joins hosts (else Ray does).
    """

    request: BaselineRequest
    claim: int
    ram: int
    utilization: float
    wanted: int
    divisibility: Divisibility
    sizes: ParallelSizes
    native: bool

    def short_of_ram(self, free: int) -> bool:
        """Whether a host with so many free bytes of RAM is too small."""
        return 0 < self.ram > free

    def share(self, host: str, indexes: Sequence[int], memory: Mapping[int, int]) -> Share:
        """What a replica takes of a host, its RAM included."""
        order = tuple(sorted(indexes))
        return Share(
            host=host,
            accelerators=order,
            accelerator_bytes=tuple(memory.get(index, 0) for index in order),
            ram_bytes=ram_claim(self.request.cache_in_ram, memory),
        )


def terms(request: BaselineRequest) -> Terms:
    """Work a request out.

    Raises:
        RefusedRequest: The first of `ErrorClass` that applies.
    """
    parameters = _parameters(request)
    sizes = parallel_sizes(parameters)
    wanted = wanted_accelerators(request, world_size(sizes, parameters))
    divisibility = _divisibility(request, parameters)
    if obstacle := divisibility.obstacle(sizes.tensor):
        raise RefusedRequest(obstacle.error, f"{obstacle.meaning}: adjust the size")
    native = is_native(request, parameters)
    if native:
        require_whole_ranks(sizes)
    return Terms(
        request=request,
        claim=memory_claim(request),
        ram=ram_need(request.cache_in_ram),
        utilization=utilization(request, parameters),
        wanted=wanted,
        divisibility=divisibility,
        sizes=sizes,
        native=native,
    )


def _parameters(request: BaselineRequest) -> Parameters:
    try:
        return Parameters(request.parameters)
    except ValueError as error:
        raise RefusedRequest(ErrorClass.UNREADABLE, f"{error}") from error


def _divisibility(request: BaselineRequest, parameters: Parameters) -> Divisibility:
    if not reads_config(request, parameters):
        return Divisibility()
    language_only = parameters.switch("language-model-only")
    return Divisibility(
        heads=request.attention_heads,
        vision_heads=None if language_only else request.vision_heads,
        vocabulary=request.vocabulary,
    )
