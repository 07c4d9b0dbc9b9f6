"""Which claimed port is for what; a shape that needs more than were claimed is refused."""

from __future__ import annotations

from enum import StrEnum

from moorage.common.failures import Cause, Failure
from moorage.engines.vllm.context import LaunchContext
from moorage.placement.topology import Shape


class PortUse(StrEnum):
    """What a port of a replica over several hosts is for."""

    SERVING = "serving"
    RPC = "data-parallel RPC"
    MASTER = "master"
    OWN = "the engine's own"
    MEETING = "meeting of the data-parallel ranks"


NATIVE = {PortUse.SERVING: 0, PortUse.RPC: 1, PortUse.MASTER: 2, PortUse.OWN: 3, PortUse.MEETING: 4}
"""Place of each among the claimed ports where vLLM joins the hosts itself."""

NEEDED = {
    Shape.DP_ONLY: (PortUse.RPC, PortUse.OWN, PortUse.MEETING),
    Shape.NESTED: (PortUse.RPC, PortUse.MASTER, PortUse.MEETING),
    Shape.MP_ONLY: (PortUse.MASTER,),
}
"""What hosts use besides, by how the replica lies over them."""


def ports_of(
    context: LaunchContext, shape: Shape | None, *, data_ranks: bool = False
) -> dict[PortUse, int]:
    """The claimed port of each use.

    Args:
        context: A container of a replica over several hosts.
        shape: How the replica lies over natively joined hosts; None = Ray joins them.
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
    # The last one is where the ranks meet, or the engine's own beside Ray.
    last = PortUse.MEETING if shape else PortUse.OWN
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
