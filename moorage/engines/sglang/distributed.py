"""How accelerators and hosts share a replica of SGLang."""

from math import lcm

from moorage.engines.flags import Flag, derived_flag, size_flags
from moorage.engines.launch import host_port
from moorage.engines.request import LaunchRequest
from moorage.engines.sglang.options import (
    ALIASES,
    ATTENTION_DATA,
    DATA,
    DP_ATTENTION,
    EXPERTS,
    PIPELINE,
    TENSOR,
)
from moorage.placement.parallelism import Parallelism, positive_size, stated_parallelism
from moorage.spec.arguments import EngineArguments

DIVISORS = (ATTENTION_DATA, "--attn-cp-size", EXPERTS, "--moe-dp-size")
"""Sizes of groups within the tensor-parallel ranks (`arg_groups/parallel_hook.py`, 0.5.23)."""


MEETING_PORTS = 14
"""Ports from `--dist-init-addr` on that groups of attention take.

Source: `PortArgs.init_new` and `DP_ATTENTION_HANDSHAKE_PORT_DELTA` of `server_args.py`, 0.5.23.
"""


def divisors(args: EngineArguments) -> dict[str, int]:
    """Stated sizes that have to divide the tensor-parallel size, by option.

    With `--enable-dp-attention`, SGLang reads the data-parallel size as the one of the attention,
    unless that is stated too (`handle_deprecated_dp_attention`).
    """
    sizes = {name: positive_size(args, name, *ALIASES[name]) or 1 for name in DIVISORS}
    if args.has(DP_ATTENTION) and sizes[ATTENTION_DATA] == 1:
        sizes[DATA] = positive_size(args, DATA) or 1
    return {name: size for name, size in sizes.items() if size > 1}


def divides_attention(args: EngineArguments) -> bool:
    """Whether the tensor-parallel ranks are several groups of attention."""
    return not divisors(args).keys().isdisjoint((ATTENTION_DATA, DATA))


def copies(args: EngineArguments) -> int:
    """Data-parallel copies of the model; groups within the tensor-parallel ranks are none."""
    return 1 if DATA in divisors(args) else positive_size(args, DATA) or 1


def parallelism(args: EngineArguments) -> Parallelism | None:
    """The sizes that the user states; an open tensor-parallel size follows from the others."""
    stated, within = stated_parallelism(args), divisors(args)
    if stated is None or (DATA in within and not args.states(TENSOR, PIPELINE)):
        return None
    tensor = stated.tensor if args.states(TENSOR) else lcm(*within.values())
    return stated.model_copy(update={"tensor": tensor, "data": copies(args)})


def parallel_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """Parallel sizes from the placement; a size that the user states replaces the derived one."""
    seat = request.seat
    reason = f"{seat.tensor * seat.pipeline} accelerators"
    if request.spans_hosts:
        reason += f" on {len(request.peers)} hosts"
    sizes = {TENSOR: seat.tensor, PIPELINE: seat.pipeline}
    return size_flags(reason, {name: size for name, size in sizes.items() if size > 1})


def host_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """Number of hosts, the seat's position, and the meeting address: a port the leader claims."""
    if not request.spans_hosts:
        return _own_address(request)
    leader, links = request.peers[0], request.peers[0].seat.links
    assert links is not None
    reason = f"host {request.seat.position} of {len(request.peers)} that share ranks"
    values = {
        "--nnodes": str(len(request.peers)),
        "--node-rank": str(request.seat.position),
        "--dist-init-addr": host_port(leader.host.bind, links.master),
    }
    return size_flags(reason, values)


def _own_address(request: LaunchRequest) -> tuple[Flag, ...]:
    """Without it, SGLang derives ports from its serving port that nobody claimed."""
    links = request.seat.links
    if links is None:
        return ()
    reason = f"{1 + links.derived} ports from here on are claimed for groups of attention"
    return (derived_flag(reason, "--dist-init-addr", host_port("127.0.0.1", links.master)),)
