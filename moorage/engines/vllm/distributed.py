"""How accelerators share a replica: parallel sizes, and the executor and ports of its hosts."""

from collections.abc import Sequence

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Refusal
from moorage.common.versions import at_least
from moorage.engines.flags import Flag, derived_flag, size_flags
from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.launch_facts import (
    arguments_of,
    by_baseline,
    is_clustered,
    ranks_by_host,
    version_of,
)
from moorage.engines.vllm.options import ALIASES
from moorage.images.catalogue import stated_version
from moorage.memory.facts import Facts
from moorage.placement.links import USES
from moorage.placement.parallelism import (
    SIZES,
    Parallelism,
    ParallelSizes,
    Shape,
    Topology,
    multi_host_topology,
    stated_parallelism,
)
from moorage.spec import Distributed, ModelSpec
from moorage.spec.arguments import EngineArguments, parse_words
from moorage.spec.tokenize import is_option

PORTS_OF_SHAPE = {
    Shape.DP_ONLY: ("rpc", "own", "joining"),
    Shape.NESTED: ("rpc", "master", "joining"),
    Shape.MP_ONLY: ("master",),
}
"""Ports that natively connected hosts need, by the shape of their replica."""


def link_ports(request: LaunchRequest, uses: Sequence[str]) -> dict[str, int]:
    """The claimed port of each use: `own` is this host's, all others are the leader's.

    Raises:
        Failure: `BAD_SPEC` when one of the ports is not claimed.
    """
    own, leader = request.seat.links, request.peers[0].seat.links
    ports = {use: getattr(own if use == "own" else leader, use, 0) for use in uses}
    if missing := [USES[use] for use, port in ports.items() if not port]:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: a replica over {len(request.peers)} hosts needs ports that are not"
            f" claimed: {', '.join(missing)}",
            suggestion="Widen `ports` of the hosts in the fleet file, and deploy again.",
        )
    return ports


EXECUTOR = "--distributed-executor-backend"
RAY, NATIVE = "ray", "mp"
"""Values of the executor, which connects the hosts of a replica."""

TENSOR, PIPELINE = "--tensor-parallel-size", "--pipeline-parallel-size"
DATA, DATA_LOCAL = "--data-parallel-size", "--data-parallel-size-local"
NATIVE_SINCE = "0.11.1"
"""First version with `--nnodes`, by that version's list of arguments."""

CUSTOM = "-custom"
"""Suffix of the version of a user's own build."""


def wanted_executor(spec: ModelSpec) -> Distributed:
    """The mechanism that connects the hosts: as the spec states, else vLLM itself if it can.

    The policy `baseline` uses Ray, with which it places uneven hosts and pipelines, except for a
    user's own build from 0.18 on, which is assumed to lack Ray like vLLM's images.
    """
    version, stated = stated_version(spec.engine), arguments_of(spec).value(EXECUTOR)
    if stated is not None:
        return Distributed.NATIVE if stated == NATIVE else Distributed.RAY
    if spec.engine.distributed != Distributed.AUTO:
        return spec.engine.distributed
    own_build = CUSTOM in version and at_least(version, "0.18.0")
    old = bool(version) and not at_least(version, NATIVE_SINCE)
    by_peer = by_baseline(spec) and not own_build
    return Distributed.RAY if by_peer or old else Distributed.NATIVE


def topology_of(request: LaunchRequest) -> Topology:
    """The topology of a replica over natively connected hosts.

    Raises:
        Failure: `BAD_SPEC` when the sizes that the user states do not fit the hosts.
    """
    args, seat = arguments_of(request.spec), request.seat
    sizes = {
        field: args.whole_number(name, *ALIASES.get(name, ())) for field, name in SIZES.items()
    }
    if not any(sizes[name] for name in ("tensor", "pipeline", "data")):
        sizes["tensor"], sizes["pipeline"] = seat.tensor, seat.pipeline
    try:
        topology = multi_host_topology(ranks_by_host(request), ParallelSizes(**sizes))
    except Refusal as refusal:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: {refusal.note}",
            suggestion="Leave the parallel sizes out: they are derived from the placement.",
        ) from refusal
    if topology.shape == Shape.NESTED:
        _require_experts(request, topology.data)
    return topology


def _require_experts(request: LaunchRequest, ranks: int) -> None:
    """Raise `BAD_SPEC` if a model is known to be dense, whose ranks would span hosts.

    vLLM then runs each rank for itself, but all meet at the leader's one master port
    (`v1/engine/core.py`, `config/parallel.py`).
    """
    try:
        dense = not Facts(request.model.config).experts
    except Refusal:
        return
    if dense:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: a model without experts cannot have {ranks} data-parallel ranks that"
            " each span hosts",
            suggestion=f"Leave {DATA} out, and set `replicas: {ranks}`.",
        )


def data_ranks(request: LaunchRequest) -> int:
    """Data-parallel ranks that the user states."""
    return arguments_of(request.spec).whole_number(DATA, "--dp") or 1


def parallel_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """Parallel sizes from the placement; none if the user states one of them.

    Natively connected hosts must agree on all sizes, so there every size that the user leaves open
    is stated.
    """
    if request.spans_hosts and not is_clustered(request):
        return _native_sizes(request)
    args, seat = arguments_of(request.spec), request.seat
    if any(_stated(args, name) for name in (TENSOR, PIPELINE, DATA)):
        return ()
    sizes = {TENSOR: seat.tensor, PIPELINE: seat.pipeline}
    if request.spans_hosts:
        return size_flags(_hosts(ranks_by_host(request)), sizes)
    reason = f"{seat.tensor * seat.pipeline} accelerators on this host"
    return size_flags(reason, {name: size for name, size in sizes.items() if size > 1})


def _stated(args: EngineArguments, name: str) -> bool:
    return args.states(name, *ALIASES.get(name, ()))


def _native_sizes(request: LaunchRequest) -> tuple[Flag, ...]:
    topology, args = topology_of(request), arguments_of(request.spec)
    sizes = {TENSOR: topology.tensor}
    if topology.pipeline > 1:
        sizes[PIPELINE] = topology.pipeline
    if topology.shape != Shape.MP_ONLY:
        sizes[DATA] = topology.data
        sizes[DATA_LOCAL] = topology.data_local[request.seat.position]
    counts = ", ".join(map(str, ranks_by_host(request)))
    reason = f"hosts of {counts} accelerators, {topology.shape}"
    left_open = {name: size for name, size in sizes.items() if not _stated(args, name)}
    return size_flags(reason, left_open)


def _hosts(counts: Sequence[int]) -> str:
    if len(set(counts)) == 1:
        return f"{len(counts)} hosts of {counts[0]} accelerators each"
    return f"hosts of {', '.join(map(str, counts))} accelerators: each is a stage of its own"


def distributed_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """The executor, and the addresses and ports that connect the hosts."""
    if not request.spans_hosts:
        return ()
    return _ray(request) if is_clustered(request) else _native(request)


SERVER_COUNT = "--api-server-count"
"""Number of processes that answer requests."""


def is_headless(request: LaunchRequest) -> bool:
    """Whether the seat only computes, for the leader answers the requests."""
    hybrid = arguments_of(request.spec).switch("--data-parallel-hybrid-lb")
    follows = request.spans_hosts and not request.leads
    return follows and not is_clustered(request) and not hybrid


def server_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """One process that answers for all data-parallel ranks: several refuse to load adapters."""
    serves = request.spec.lora_updates and not is_headless(request)
    if not serves or data_ranks(request) == 1:
        return ()
    return (derived_flag("lora_updates: one server loads the adapters", SERVER_COUNT, "1"),)


def words_without_server(args: EngineArguments) -> tuple[str, ...]:
    """The user's words without the option that vLLM refuses with `--headless` (`cli/serve.py`)."""
    words, drops = [], False
    for word in args.words:
        if is_option(word):
            drops = parse_words((word,)).states(SERVER_COUNT)
        if not drops:
            words.append(word)
    return tuple(words)


def ray_ports(request: LaunchRequest) -> dict[str, int]:
    """The ports needed by a replica whose hosts Ray connects."""
    return link_ports(request, ("rpc", "own") if data_ranks(request) > 1 else ("own",))


def _ray(request: LaunchRequest) -> tuple[Flag, ...]:
    flags = [derived_flag("Ray joins the hosts", EXECUTOR, RAY)]
    ranks, ports = data_ranks(request), ray_ports(request)
    if ranks > 1:
        reason = f"{ranks} data-parallel ranks over several hosts"
        flags.append(derived_flag(reason, "--data-parallel-backend", RAY))
        flags.append(derived_flag(reason, "--data-parallel-rpc-port", str(ports["rpc"])))
        flags += _local_ranks(request)
    return tuple(flags)


def _local_ranks(request: LaunchRequest) -> tuple[Flag, ...]:
    """Ranks on the leader's host; without them vLLM would place all there (`v1/engine/utils.py`).

    GPUStack does not state them.
    """
    args, local = arguments_of(request.spec), ranks_by_host(request)[0]
    if by_baseline(request.spec) or ranks_span_hosts(request) or _stated(args, DATA_LOCAL):
        return ()
    size = local // _rank_size(request)
    return size_flags(f"{local} accelerators on the leader's host", {DATA_LOCAL: size})


def ranks_span_hosts(request: LaunchRequest) -> bool:
    """Whether one of several data-parallel ranks takes more than the leader's host gives."""
    return data_ranks(request) > 1 and _rank_size(request) > ranks_by_host(request)[0]


def _rank_size(request: LaunchRequest) -> int:
    stated = stated_parallelism(arguments_of(request.spec)) or Parallelism()
    return stated.world // stated.data


def _native(request: LaunchRequest) -> tuple[Flag, ...]:
    topology, leader = topology_of(request), request.peers[0].host.bind
    position, hosts = request.seat.position, len(request.peers)
    ports = link_ports(request, PORTS_OF_SHAPE[topology.shape])
    flags = [derived_flag("vLLM joins the hosts itself", EXECUTOR, NATIVE)]
    if topology.shape != Shape.DP_ONLY:
        reason = f"host {position} of {hosts} that share ranks"
        values = {
            "--nnodes": hosts,
            "--node-rank": position,
            "--master-addr": leader,
            "--master-port": ports["master"],
        }
        flags += size_flags(reason, values)
    if topology.shape != Shape.MP_ONLY:
        reason = f"{topology.data} data-parallel ranks over {hosts} hosts"
        rank = topology.start_ranks[position]
        if topology.shape == Shape.DP_ONLY and (rank or _states_rank_zero(request)):
            flags.append(derived_flag(reason, "--data-parallel-start-rank", str(rank)))
        flags.append(derived_flag(reason, "--data-parallel-address", leader))
        flags.append(derived_flag(reason, "--data-parallel-rpc-port", str(ports["rpc"])))
    if is_headless(request):
        flags.append(derived_flag("the leader answers the requests", "--headless"))
    return tuple(flags)


def _states_rank_zero(request: LaunchRequest) -> bool:
    """Whether the leader gets its start rank, as from GPUStack.

    From 0.28 on it would balance the load for its own ranks only, and refuse headless followers
    (`arg_utils.py`, `v1/engine/utils.py`). Older versions ignore it.
    """
    version = version_of(request)
    return by_baseline(request.spec) and bool(version) and not at_least(version, "0.28.0")
