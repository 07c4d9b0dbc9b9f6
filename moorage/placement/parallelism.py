"""Sizes of the parallel dimensions, and how one vLLM group spreads over several hosts."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from math import gcd, prod

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason, Refusal
from moorage.common.values import Value
from moorage.spec.arguments import EngineArguments

SIZES = {
    "tensor": "--tensor-parallel-size",
    "pipeline": "--pipeline-parallel-size",
    "data": "--data-parallel-size",
    "prefill_context": "--prefill-context-parallel-size",
    "data_local": "--data-parallel-size-local",
}
"""vLLM's options by field. Decode-context parallelism reuses tensor ranks and adds none."""


class Parallelism(Value):
    """Sizes of the parallel dimensions; their product is the number of accelerators.

    Attributes:
        tensor: Ranks that share each layer.
        pipeline: Stages that share the layers.
        data: Copies of the whole model.
        prefill_context: Ranks that share the tokens of a prefill.
        data_local: Copies on each host; 0 = open.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    prefill_context: int = 1
    data_local: int = 0

    @property
    def hosts(self) -> int:
        """Hosts over which the copies spread; 0 = open, or all copies are on one host."""
        return -(-self.data // self.data_local) if 0 < self.data_local < self.data else 0

    @property
    def world(self) -> int:
        """Accelerators that one replica takes."""
        return prod((self.tensor, self.pipeline, self.data, self.prefill_context))

    def __str__(self) -> str:
        sizes = self.model_dump()
        parts = [f"{name.replace('_', '-')} {size}" for name, size in sizes.items() if size > 1]
        return " x ".join(parts) or "one accelerator"


def split_over_hosts(counts: Sequence[int], *, natively: bool = False) -> tuple[int, int]:
    """Tensor and pipeline sizes by the peer's rules if the user states none.

    With Ray, each host is a stage; if hosts give different numbers of accelerators, each
    accelerator is a stage. Natively joined hosts hold one copy of the model each. `counts` are the
    accelerators of each host; `natively`: vLLM joins the hosts itself.
    """
    if natively and len(counts) > 1:
        return gcd(*counts), 1
    return (1, sum(counts)) if len(set(counts)) > 1 else (counts[0], len(counts))


def stated_parallelism(args: EngineArguments) -> Parallelism | None:
    """The parallel sizes in the user's arguments; None if the arguments state no size.

    Raises:
        Failure: `BAD_SPEC` when a size is not positive.
    """
    found = {name: positive_size(args, flag) for name, flag in SIZES.items()}
    sizes = {name: size for name, size in found.items() if size is not None}
    return Parallelism(**sizes) if sizes.keys() - {"data_local"} else None


def positive_size(args: EngineArguments, *names: str) -> int | None:
    """The size that an option has under any of its names; None when the option is absent.

    Raises:
        Failure: `BAD_SPEC` when the size is not positive.
    """
    size = args.whole_number(*names)
    if size is not None and size < 1:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: {names[0]} {size} must be positive",
            suggestion=f"Write `{names[0]}=2`, or leave it out: it is derived from the placement.",
        )
    return size


LISTED = 8
"""Most hosts listed in a reason."""


class Shape(StrEnum):
    """What the hosts of a parallel group share."""

    DP_ONLY = "dp_only"
    """Nothing: each rank lives on one host."""

    MP_ONLY = "mp_only"
    """The one rank."""

    NESTED = "nested"
    """Several ranks, each of which spans several hosts."""


@dataclass(frozen=True, slots=True)
class ParallelSizes:
    """Sizes that the user demands, as `SIZES` names them.

    None = to be derived; for `pipeline` and `prefill_context` 1.
    """

    tensor: int | None = None
    pipeline: int | None = None
    prefill_context: int | None = None
    data: int | None = None
    data_local: int | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """A layout that vLLM accepts.

    Attributes:
        data_local: Data-parallel ranks on each host, in host order.
        start_ranks: First rank on each host, in host order.
    """

    shape: Shape
    tensor: int
    pipeline: int
    data: int
    data_local: tuple[int, ...]
    start_ranks: tuple[int, ...]


def multi_host_topology(accelerators: Sequence[int], sizes: ParallelSizes) -> Topology:
    """Lay a parallel group out over hosts; `accelerators` gives the number on each host.

    Raises:
        Refusal: `TOPOLOGY` when vLLM accepts no layout.
    """
    if min(accelerators, default=0) <= 0:
        raise _refusal("every host has to give at least one accelerator")
    for name in SIZES:
        size = getattr(sizes, name)
        if size is not None and size <= 0:
            raise _refusal(f"the {name.replace('_', '-')} parallel size {size} is not positive")
    tensor = _tensor_size(accelerators, sizes)
    rank = tensor * (sizes.pipeline or 1) * (sizes.prefill_context or 1)
    if rank <= min(accelerators):
        return _ranks_in_hosts(accelerators, sizes, tensor, rank)
    return _ranks_over_hosts(accelerators, sizes, tensor, rank)


def _tensor_size(accelerators: Sequence[int], sizes: ParallelSizes) -> int:
    if sizes.tensor is not None:
        return sizes.tensor
    if sizes.data is None:
        return gcd(*accelerators)
    total = sum(accelerators)
    others = sizes.data * (sizes.pipeline or 1) * (sizes.prefill_context or 1)
    if total % others:
        raise _refusal(
            f"{total} accelerators cannot be split into {others} equal parts, so no tensor "
            f"parallel size goes with data parallel size {sizes.data}"
        )
    return total // others


def _ranks_in_hosts(
    accelerators: Sequence[int], sizes: ParallelSizes, tensor: int, rank: int
) -> Topology:
    local = tuple(number // rank for number in accelerators)
    ranks = sum(local)
    _require_data(sizes, ranks)
    if sizes.data_local is not None and set(local) != {sizes.data_local}:
        raise _refusal(
            f"{sizes.data_local} local ranks are requested, the hosts take {_listed(local)}"
        )
    return Topology(
        shape=Shape.DP_ONLY,
        tensor=tensor,
        pipeline=sizes.pipeline or 1,
        data=ranks,
        data_local=local,
        start_ranks=tuple(accumulate(local[:-1], initial=0)),
    )


def _ranks_over_hosts(
    accelerators: Sequence[int], sizes: ParallelSizes, tensor: int, rank: int
) -> Topology:
    hosts, each = len(accelerators), accelerators[0]
    if set(accelerators) != {each}:
        raise _refusal(
            f"a rank of {rank} accelerators spans hosts, which then have to be equal; "
            f"they give {_listed(accelerators)}"
        )
    if rank % each:
        raise _refusal(f"a rank of {rank} accelerators does not fill hosts of {each}")
    span = rank // each
    if hosts % span:
        raise _refusal(f"{hosts} hosts cannot be split into ranks of {span} hosts")
    _require_data(sizes, hosts // span)
    if sizes.data_local not in (None, 1):
        raise _refusal(f"{sizes.data_local} local ranks are requested, but a rank spans hosts")
    return Topology(
        shape=Shape.MP_ONLY if hosts == span else Shape.NESTED,
        tensor=tensor,
        pipeline=sizes.pipeline or 1,
        data=hosts // span,
        data_local=(1,) * hosts,
        start_ranks=tuple(host // span for host in range(hosts)),
    )


def _require_data(sizes: ParallelSizes, ranks: int) -> None:
    if sizes.data not in (None, ranks):
        raise _refusal(f"data parallel size {sizes.data} is requested, the hosts take {ranks}")


def _listed(numbers: Sequence[int]) -> str:
    more = ", ..." if len(numbers) > LISTED else ""
    return ", ".join(str(number) for number in numbers[:LISTED]) + more


def _refusal(note: str) -> Refusal:
    return Refusal(Reason.TOPOLOGY, note)
