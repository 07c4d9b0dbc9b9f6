"""One replica on several hosts: what joins them, and what each is told about the others."""

from __future__ import annotations

from moorage.common.failures import Cause, Failure
from moorage.engines.launch import Flag
from moorage.engines.vllm.context import LaunchContext
from moorage.engines.vllm.names import SHORT_NAMES
from moorage.engines.vllm.peer_words import peer_words
from moorage.engines.vllm.policy import Executor
from moorage.engines.vllm.ports import PortUse, ports_of
from moorage.engines.vllm.rule import derived
from moorage.engines.vllm.version import at_least
from moorage.placement.topology import (
    ParallelSizes,
    Shape,
    Topology,
    TopologyRefusal,
    multi_host_topology,
)
from moorage.spec import Distributed, ModelSpec, Policy
from moorage.spec.arguments import argument, switch, user_tokens, whole_number

EXECUTOR = "--distributed-executor-backend"
SIZES = {
    "tensor": "--tensor-parallel-size",
    "pipeline": "--pipeline-parallel-size",
    "prefill": "--prefill-context-parallel-size",
    "data": "--data-parallel-size",
    "data_local": "--data-parallel-size-local",
}
NATIVE_SINCE = "0.11.1"
"""First version with `--nnodes`, by its own list of arguments."""

CUSTOM = "-custom"
"""Ending of a version that is the user's own build."""


def executor_of(context: LaunchContext) -> Executor:
    """What joins the hosts: as they were placed, else what the user says, else by policy.

    A user's own build since 0.18 is not taken to hold Ray, for vLLM's images do not any more.
    """
    if context.executor is not None:
        return context.executor
    stated = argument(context.words, EXECUTOR)
    if stated is not None:
        return Executor.NATIVE if stated == Executor.NATIVE else Executor.RAY
    if _is_own_build(context.version):
        return Executor.NATIVE
    return context.policy.executor


def wanted_executor(spec: ModelSpec) -> Distributed:
    """What joins the hosts of a replica: as the spec says, else vLLM itself where it can.

    The baseline's own rules take Ray, with which its uneven hosts and pipelines are placed, but for
    a user's own build.
    """
    words, baseline = user_tokens(spec.engine.args), spec.placement.policy == Policy.BASELINE
    stated = argument(peer_words(words) if baseline else words, EXECUTOR)
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
    """Whether vLLM joins the hosts itself."""
    return executor_of(context) == Executor.NATIVE


def topology_of(context: LaunchContext) -> Topology:
    """How the replica lies over natively joined hosts.

    Raises:
        Failure: `BAD_SPEC` when the sizes that the user states do not go with the hosts.
    """
    sizes = {
        field: whole_number(context.words, name, *SHORT_NAMES.get(name, ()))
        for field, name in SIZES.items()
    }
    if context.shared and not any(sizes[name] for name in ("tensor", "pipeline", "data")):
        sizes["tensor"], sizes["pipeline"] = context.shared
    found = multi_host_topology(
        [member.accelerators for member in context.members], ParallelSizes(**sizes)
    )
    if isinstance(found, TopologyRefusal):
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: {found.reason}",
            suggestion="Leave the parallel sizes out: they are derived from the placement.",
        )
    return found


def data_ranks(context: LaunchContext) -> int:
    """Data-parallel ranks that the user states."""
    return whole_number(context.words, "--data-parallel-size", "-dp", "--dp") or 1


def distributed_flags(context: LaunchContext) -> tuple[Flag, ...]:
    """The executor, and what the hosts need to find each other."""
    if not context.spans_hosts:
        return ()
    return _native(context) if joins_natively(context) else _ray(context)


def _ray(context: LaunchContext) -> tuple[Flag, ...]:
    flags = [derived("Ray joins the hosts", EXECUTOR, Executor.RAY)]
    ranks = data_ranks(context)
    ports = ports_of(context, None, data_ranks=ranks > 1)
    if ranks > 1:
        reason = f"{ranks} data-parallel ranks over several hosts"
        flags.append(derived(reason, "--data-parallel-backend", Executor.RAY))
        flags.append(derived(reason, "--data-parallel-rpc-port", str(ports[PortUse.RPC])))
    return tuple(flags)


def _native(context: LaunchContext) -> tuple[Flag, ...]:
    topology, leader = topology_of(context), context.members[0].address
    ports = ports_of(context, topology.shape)
    flags = [derived("vLLM joins the hosts itself", EXECUTOR, Executor.NATIVE)]
    if topology.shape != Shape.DP_ONLY:
        reason = f"host {context.position} of {len(context.members)} that share ranks"
        values = {
            "--nnodes": len(context.members),
            "--node-rank": context.position,
            "--master-addr": leader,
            "--master-port": ports[PortUse.MASTER],
        }
        flags += [derived(reason, name, str(value)) for name, value in values.items()]
    if topology.shape != Shape.MP_ONLY:
        reason = f"{topology.data} data-parallel ranks over {len(context.members)} hosts"
        rank = topology.start_ranks[context.position]
        if topology.shape == Shape.DP_ONLY and (rank or context.policy.leader_rank):
            flags.append(derived(reason, "--data-parallel-start-rank", str(rank)))
        flags.append(derived(reason, "--data-parallel-address", leader))
        flags.append(derived(reason, "--data-parallel-rpc-port", str(ports[PortUse.RPC])))
    if not context.leads and not switch(context.words, "--data-parallel-hybrid-lb"):
        flags.append(derived("the leader answers the requests", "--headless"))
    return tuple(flags)
