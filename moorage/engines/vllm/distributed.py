"""How accelerators share the work of a replica: sizes, and executor and ports of its hosts."""

from collections.abc import Sequence
from enum import StrEnum

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Refusal
from moorage.common.versions import at_least
from moorage.engines.flags import Flag, derived_flag
from moorage.engines.vllm.context import Executor, LaunchContext, Member, baseline_arguments
from moorage.engines.vllm.options import ALIASES
from moorage.placement.parallelism import (
    ParallelSizes,
    Shape,
    Topology,
    multi_host_topology,
    split_over_hosts,
)
from moorage.spec import Distributed, ModelSpec, Policy
from moorage.spec.arguments import EngineArguments


class PortUse(StrEnum):
    """Uses of the ports of a replica over several hosts."""

    SERVING = "serving"
    RPC = "data-parallel RPC"
    MASTER = "master"
    OWN = "the engine's own"
    JOINING = "meeting of the data-parallel ranks"


NATIVE = {PortUse.SERVING: 0, PortUse.RPC: 1, PortUse.MASTER: 2, PortUse.OWN: 3, PortUse.JOINING: 4}
"""Position of each among the claimed ports where vLLM connects the hosts itself."""

NEEDED = {
    Shape.DP_ONLY: (PortUse.RPC, PortUse.OWN, PortUse.JOINING),
    Shape.NESTED: (PortUse.RPC, PortUse.MASTER, PortUse.JOINING),
    Shape.MP_ONLY: (PortUse.MASTER,),
}
"""Further ports of the hosts, by the shape of the replica."""


def ports_of(
    context: LaunchContext, shape: Shape | None, *, data_ranks: bool = False
) -> dict[PortUse, int]:
    """The claimed port of each use.

    Args:
        context: A container of a replica over several hosts.
        shape: Shape of the replica over natively connected hosts; None = Ray connects them.
        data_ranks: Whether there are data-parallel ranks for Ray.

    Raises:
        Failure: `BAD_SPEC` when fewer are claimed than the shape needs, or one of them twice.
    """
    if shape:
        places = {use: NATIVE[use] for use in (PortUse.SERVING, *NEEDED[shape])}
    else:
        uses = (PortUse.SERVING, *[PortUse.RPC] * data_ranks, PortUse.OWN)
        places = {use: at for at, use in enumerate(uses)}
    if len(context.ports) <= max(places.values()):
        raise _refused(context, places, len(context.ports))
    # The last one connects the ranks; with Ray it is the engine's own.
    last = PortUse.JOINING if shape else PortUse.OWN
    found = {use: context.ports[-1 if use == last else at] for use, at in places.items()}
    # A follower serves nothing: the port of its seat may be the first of its own.
    apart = {use: port for use, port in found.items() if context.leads or use != PortUse.SERVING}
    if not all(apart.values()) or len(set(apart.values())) < len(apart):
        raise _refused(context, places, len({*apart.values()} - {0}))
    return found


def _refused(context: LaunchContext, places: dict[PortUse, int], claimed: int) -> Failure:
    ranks = "data-parallel ranks" if PortUse.RPC in places else "a replica"
    return Failure(
        Cause.BAD_SPEC,
        f"engine.args: {ranks} over {len(context.members)} hosts need"
        f" {max(places.values()) + 1} ports ({', '.join(places)}), {claimed} claimed",
        suggestion="Widen `ports` of the hosts in the fleet file, and deploy anew.",
    )


EXECUTOR = "--distributed-executor-backend"
TENSOR, PIPELINE = "--tensor-parallel-size", "--pipeline-parallel-size"
DATA, DATA_LOCAL = "--data-parallel-size", "--data-parallel-size-local"
SIZES = {
    "tensor": TENSOR,
    "pipeline": PIPELINE,
    "prefill": "--prefill-context-parallel-size",
    "data": DATA,
    "data_local": DATA_LOCAL,
}
NATIVE_SINCE = "0.11.1"
"""First version with `--nnodes`, by its own list of arguments."""

CUSTOM = "-custom"
"""Ending of a version that is the user's own build."""


def executor_of(context: LaunchContext) -> Executor:
    """What connects the hosts: as placed, else as the user states, else by policy.

    A user's own build since 0.18 is assumed to lack Ray, as vLLM's images do.
    """
    if context.executor is not None:
        return context.executor
    stated = context.args.value(EXECUTOR)
    if stated is not None:
        return Executor.NATIVE if stated == Executor.NATIVE else Executor.RAY
    if _is_own_build(context.version):
        return Executor.NATIVE
    return context.policy.executor


def wanted_executor(spec: ModelSpec) -> Distributed:
    """What connects the hosts of a replica: as the spec states, else vLLM itself where it can.

    The baseline takes Ray, with which it places uneven hosts and pipelines, except for a user's
    own build.
    """
    args, baseline = spec.engine.arguments, spec.placement.policy == Policy.BASELINE
    stated = (baseline_arguments(args) if baseline else args).value(EXECUTOR)
    if stated is not None:
        return Distributed.NATIVE if stated == Executor.NATIVE else Distributed.RAY
    if spec.engine.distributed != Distributed.AUTO:
        return spec.engine.distributed
    by_peer = baseline and not _is_own_build(spec.engine.version)
    old = spec.engine.version is not None and not at_least(spec.engine.version, NATIVE_SINCE)
    return Distributed.RAY if by_peer or old else Distributed.NATIVE


def _is_own_build(version: str | None) -> bool:
    return version is not None and CUSTOM in version and at_least(version, "0.18.0")


def joins_natively(context: LaunchContext) -> bool:
    """Whether vLLM connects the hosts itself."""
    return executor_of(context) == Executor.NATIVE


def topology_of(context: LaunchContext) -> Topology:
    """The topology of a replica over natively connected hosts.

    Raises:
        Failure: `BAD_SPEC` when the sizes that the user states do not go with the hosts.
    """
    sizes = {
        field: context.args.whole_number(name, *ALIASES.get(name, ()))
        for field, name in SIZES.items()
    }
    if context.shared and not any(sizes[name] for name in ("tensor", "pipeline", "data")):
        sizes["tensor"], sizes["pipeline"] = context.shared
    accelerators = [member.accelerators for member in context.members]
    try:
        return multi_host_topology(accelerators, ParallelSizes(**sizes))
    except Refusal as refusal:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: {refusal.note}",
            suggestion="Leave the parallel sizes out: they are derived from the placement.",
        ) from refusal


def data_ranks(context: LaunchContext) -> int:
    """Data-parallel ranks that the user states."""
    return context.args.whole_number(DATA, "--dp") or 1


def parallel_flags(context: LaunchContext) -> tuple[Flag, ...]:
    """Sizes that follow from the placement; none where the user states one of them.

    Natively connected hosts must agree on all sizes, so there each size that the user leaves open
    is stated.
    """
    if context.spans_hosts and joins_natively(context):
        return _native_sizes(context)
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


def _native_sizes(context: LaunchContext) -> tuple[Flag, ...]:
    topology = topology_of(context)
    sizes = {TENSOR: topology.tensor}
    if topology.pipeline > 1:
        sizes[PIPELINE] = topology.pipeline
    if topology.shape != Shape.MP_ONLY:
        sizes[DATA] = topology.data
        sizes[DATA_LOCAL] = topology.data_local[context.position]
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


def distributed_flags(context: LaunchContext) -> tuple[Flag, ...]:
    """The executor, and the addresses and ports that connect the hosts."""
    if not context.spans_hosts:
        return ()
    return _native(context) if joins_natively(context) else _ray(context)


def _ray(context: LaunchContext) -> tuple[Flag, ...]:
    flags = [derived_flag("Ray joins the hosts", EXECUTOR, Executor.RAY)]
    ranks = data_ranks(context)
    ports = ports_of(context, None, data_ranks=ranks > 1)
    if ranks > 1:
        reason = f"{ranks} data-parallel ranks over several hosts"
        flags.append(derived_flag(reason, "--data-parallel-backend", Executor.RAY))
        flags.append(derived_flag(reason, "--data-parallel-rpc-port", str(ports[PortUse.RPC])))
    return tuple(flags)


def _native(context: LaunchContext) -> tuple[Flag, ...]:
    topology, leader = topology_of(context), context.members[0].address
    ports = ports_of(context, topology.shape)
    flags = [derived_flag("vLLM joins the hosts itself", EXECUTOR, Executor.NATIVE)]
    if topology.shape != Shape.DP_ONLY:
        reason = f"host {context.position} of {len(context.members)} that share ranks"
        values = {
            "--nnodes": len(context.members),
            "--node-rank": context.position,
            "--master-addr": leader,
            "--master-port": ports[PortUse.MASTER],
        }
        flags += [derived_flag(reason, name, str(value)) for name, value in values.items()]
    if topology.shape != Shape.MP_ONLY:
        reason = f"{topology.data} data-parallel ranks over {len(context.members)} hosts"
        rank = topology.start_ranks[context.position]
        if topology.shape == Shape.DP_ONLY and (rank or context.policy.leader_rank):
            flags.append(derived_flag(reason, "--data-parallel-start-rank", str(rank)))
        flags.append(derived_flag(reason, "--data-parallel-address", leader))
        flags.append(derived_flag(reason, "--data-parallel-rpc-port", str(ports[PortUse.RPC])))
    if not context.leads and not context.args.switch("--data-parallel-hybrid-lb"):
        flags.append(derived_flag("the leader answers the requests", "--headless"))
    return tuple(flags)
