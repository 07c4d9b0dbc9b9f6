"""How many accelerators a replica takes, as far as the user says so."""

from __future__ import annotations

from math import prod

from moorage.placement.baseline.parameters import Parameters
from moorage.placement.baseline.refusal import ErrorClass, RefusedRequest
from moorage.placement.baseline.request import BaselineRequest
from moorage.placement.parallelism import ParallelSizes

FLAGS = {
    "tensor": ("tensor-parallel-size", "tp"),
    "pipeline": ("pipeline-parallel-size", "pp"),
    "prefill": ("prefill-context-parallel-size", "pcp"),
    "data": ("data-parallel-size", "dp"),
    "data_local": ("data-parallel-size-local", "dpl"),
}
NATIVE_SINCE = [[0], [18], [0]]
"""From this version of vLLM on, an image of the user's own is not taken to hold Ray."""

EARLY = {"alpha": -3, "beta": -2, "rc": -1}


def parallel_sizes(parameters: Parameters) -> ParallelSizes:
    """Read the sizes.

    Raises:
        RefusedRequest: `NON_POSITIVE`.
    """
    sizes = {field: parameters.number(*flags) for field, flags in FLAGS.items()}
    for field, size in sizes.items():
        if size is not None and size <= 0:
            raise RefusedRequest(
                ErrorClass.NON_POSITIVE, f"--{FLAGS[field][0]} {size} must be positive"
            )
    return ParallelSizes(**sizes)


def world_size(sizes: ParallelSizes, parameters: Parameters) -> int | None:
    """Accelerators of one replica by its parallel sizes; None when they leave it open.

    With hybrid load balancing the data-parallel size counts ranks of other deployments too, so
    the local one takes its place.
    """
    data = sizes.data
    if parameters.switch("data-parallel-hybrid-lb"):
        if sizes.data_local is None:
            return None
        data = sizes.data_local
    given = [size for size in (sizes.tensor, sizes.pipeline, sizes.prefill, data) if size]
    return prod(given) if given else None


def wanted_accelerators(request: BaselineRequest, world: int | None) -> int:
    """Accelerators of one replica; 0 = open.

    Raises:
        RefusedRequest: `COUNT` when the named accelerators disagree with the parallel sizes.
    """
    named = request.accelerators_per_replica or len(request.manual) if request.manual else 0
    if world is None:
        return named
    if named and named != world:
        if not request.count_checked:
            return named
        raise RefusedRequest(
            ErrorClass.COUNT,
            f"{named} accelerators are selected for a replica, its parallel sizes take {world}",
        )
    return world


def is_native(request: BaselineRequest, parameters: Parameters) -> bool:
    """Whether hosts are joined by vLLM itself (`mp`) instead of Ray."""
    written = parameters.value("distributed-executor-backend")
    if written is not None:
        return written == "mp"
    version = request.engine_version or ""
    if "-custom" not in version:
        return False
    parts = _version_parts(version)
    return parts >= NATIVE_SINCE + [[0]] * (len(parts) - len(NATIVE_SINCE))


def require_whole_ranks(sizes: ParallelSizes) -> None:
    """Natively joined hosts have to share the ranks evenly.

    Raises:
        RefusedRequest: `LOCAL_RANKS`.
    """
    if sizes.data is not None and sizes.data_local is not None and sizes.data % sizes.data_local:
        raise RefusedRequest(
            ErrorClass.LOCAL_RANKS,
            f"--data-parallel-size {sizes.data} must be a multiple of "
            f"--data-parallel-size-local {sizes.data_local}",
        )


def _version_parts(version: str) -> list[list[int]]:
    """Numbers by value; words by their letters, which come after any small number."""
    text = version.removeprefix("v")
    for separator in "-_+":
        text = text.replace(separator, ".")
    return [_version_part(part) for part in text.split(".")]


def _version_part(part: str) -> list[int]:
    if part.isdigit():
        return [int(part)]
    for word, rank in EARLY.items():
        if part.startswith(word):
            return [rank, *map(ord, part.removeprefix(word))]
    return [*map(ord, part)]
