"""Parallel sizes: how the accelerators of a replica share the work."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.engines.flags import Flag, derived_flag
from moorage.engines.vllm.context import LaunchContext, Member
from moorage.engines.vllm.distributed import joins_natively, topology_of
from moorage.engines.vllm.options import ALIASES
from moorage.placement.parallelism import Shape, split_over_hosts
from moorage.spec.arguments import EngineArguments

TENSOR, PIPELINE, DATA = (
    "--tensor-parallel-size",
    "--pipeline-parallel-size",
    "--data-parallel-size",
)


def parallel_flags(context: LaunchContext) -> tuple[Flag, ...]:
    """Sizes that follow from the placement; none where the user states one of them.

    Natively connected hosts must agree on all sizes, so there each size that the user leaves open
    is stated.
    """
    if context.spans_hosts and joins_natively(context):
        return _native(context)
    if any(_stated(context.args, name) for name in (TENSOR, PIPELINE, DATA)):
        return ()
    if context.spans_hosts:
        counts = [member.accelerators for member in context.members]
        tensor, pipeline = context.shared or split_over_hosts(counts)
        reason = _uneven(context.members) or _even(context.members)
        return (
            derived_flag(reason, TENSOR, str(tensor)),
            derived_flag(reason, PIPELINE, str(pipeline)),
        )
    reason = f"{context.tensor * context.pipeline} accelerators on this host"
    sizes = {TENSOR: context.tensor, PIPELINE: context.pipeline}
    return tuple(derived_flag(reason, name, str(size)) for name, size in sizes.items() if size > 1)


def _stated(args: EngineArguments, name: str) -> bool:
    return args.states(name, *ALIASES.get(name, ()))


def _native(context: LaunchContext) -> tuple[Flag, ...]:
    topology = topology_of(context)
    sizes = {TENSOR: topology.tensor}
    if topology.pipeline > 1:
        sizes[PIPELINE] = topology.pipeline
    if topology.shape != Shape.MP_ONLY:
        sizes[DATA] = topology.data
        sizes["--data-parallel-size-local"] = topology.data_local[context.position]
    counts = ", ".join(str(member.accelerators) for member in context.members)
    reason = f"hosts of {counts} accelerators, {topology.shape}"
    return tuple(
        derived_flag(reason, name, str(size))
        for name, size in sizes.items()
        if not _stated(context.args, name)
    )


def _even(members: Sequence[Member]) -> str:
    return f"{len(members)} hosts of {members[0].accelerators} accelerators each"


def _uneven(members: Sequence[Member]) -> str:
    counts = [member.accelerators for member in members]
    if len(set(counts)) == 1:
        return ""
    return f"hosts of {', '.join(map(str, counts))} accelerators: each is a stage of its own"
