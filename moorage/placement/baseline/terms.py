"""What a request comes to, worked out once and read by every strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moorage.placement.baseline.divisibility import Divisibility
from moorage.placement.baseline.estimate import memory_claim, ram_claim, ram_need
from moorage.placement.baseline.parallelism import (
    is_native,
    parallel_sizes,
    require_whole_ranks,
    wanted_accelerators,
    world_size,
)
from moorage.placement.baseline.parameters import Parameters
from moorage.placement.baseline.refusal import ErrorClass, RefusedRequest
from moorage.placement.baseline.request import BaselineRequest
from moorage.placement.baseline.utilization import reads_config, utilization
from moorage.placement.candidate import Share
from moorage.placement.topology import ParallelSizes


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
