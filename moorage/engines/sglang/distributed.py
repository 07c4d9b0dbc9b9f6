"""How accelerators and hosts share a replica of SGLang."""

from moorage.common.failures import Cause, Failure
from moorage.engines.flags import Flag, derived_flag
from moorage.engines.launch import host_port
from moorage.engines.request import LaunchRequest
from moorage.engines.sglang.options import ALIASES, DATA, PIPELINE, TENSOR


def parallel_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """Parallel sizes from the placement; a size that the user states replaces the derived one."""
    seat = request.seat
    reason = f"{seat.tensor * seat.pipeline} accelerators"
    if request.spans_hosts:
        reason += f" on {len(request.peers)} hosts"
    if request.spec.engine.arguments.states(DATA):
        return ()
    sizes = {TENSOR: seat.tensor, PIPELINE: seat.pipeline}
    return tuple(derived_flag(reason, name, str(size)) for name, size in sizes.items() if size > 1)


def host_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """Number of hosts, the seat's position, and the meeting address: a port the leader claims."""
    if not request.spans_hosts:
        return ()
    leader, links = request.peers[0], request.peers[0].seat.links
    assert links is not None
    reason = f"host {request.seat.position} of {len(request.peers)} that share ranks"
    values = {
        "--nnodes": str(len(request.peers)),
        "--node-rank": str(request.seat.position),
        "--dist-init-addr": host_port(leader.address, links.master),
    }
    return tuple(derived_flag(reason, name, value) for name, value in values.items())


def copies_refusal(request: LaunchRequest) -> Failure | None:
    """Why later adapters are impossible: with data-parallel copies, SGLang fails to load them."""
    copies = request.spec.engine.arguments.whole_number(DATA) or 1
    if request.spec.lora_updates is None or copies <= 1:
        return None
    return Failure(
        Cause.BAD_SPEC,
        f"lora_updates: SGLang does not load adapters later with {DATA} above 1",
        suggestion=f"Leave {DATA} or `lora_updates` out; `replicas` serves more.",
    )


def spanning_refusal(request: LaunchRequest) -> Failure | None:
    """Why SGLang refuses the sizes over several hosts, or placement did not read them."""
    for name in (TENSOR, PIPELINE, DATA):
        written = [short for short in ALIASES[name] if request.spec.engine.arguments.states(short)]
        if written:
            return Failure(
                Cause.BAD_SPEC,
                f"engine.args: {written[0]} is not counted with when the model is placed",
                suggestion=f"Write {name}, or leave it out: it is derived from the placement.",
            )
    if request.spans_hosts and (request.spec.engine.arguments.whole_number(DATA) or 1) > 1:
        return Failure(
            Cause.BAD_SPEC,
            f"engine.args: {DATA}: SGLang runs no data-parallel copies over several hosts",
            suggestion="Use `replicas`, or `--attn-dp-size` for data-parallel attention.",
        )
    counts = {len(peer.seat.accelerators) for peer in request.peers}
    if len(counts) > 1:
        return Failure(
            Cause.BAD_SPEC,
            "SGLang gives every host of a replica the same number of ranks, and these hosts have "
            + ", ".join(str(len(peer.seat.accelerators)) for peer in request.peers),
            suggestion="Name hosts with as many accelerators each in `placement.accelerators`.",
        )
    return None
