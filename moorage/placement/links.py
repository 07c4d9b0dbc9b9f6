"""Addresses and ports that join the hosts of one replica."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason, Refusal
from moorage.inventory.fleet import Fleet
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.baseline.terms import by_baseline_rules
from moorage.placement.engine import EngineTraits
from moorage.placement.fit import free_ports, port_refusal
from moorage.placement.placement import RAY_SERVICES, Links, Seat
from moorage.placement.request import Request
from moorage.placement.role import Role
from moorage.spec import Distributed, ModelSpec, RuntimeName

USES = {
    "rpc": "data-parallel RPC",
    "master": "master",
    "own": "the engine's own",
    "joining": "meeting of the data-parallel ranks",
}
"""Uses of a leader's ports."""


def join_refusal(request: Request, host: HostSnapshot) -> Refusal | None:
    """Why a host cannot join or lead a replica over several hosts; None = it can do both."""
    if not is_peer_address(host.bind):
        note = f"bind {host.bind} is no address that other hosts reach: write one in the fleet file"
        return Refusal(Reason.NOT_JOINABLE, note)
    kinds = _kinds(request)
    needed = 1 + len(kinds)
    if len(free_ports(host, needed)) < needed:
        low, high = host.port_range
        note = f"{needed} free ports of {low}-{high} are needed to lead ({_uses(kinds)})"
        return Refusal(Reason.PORT, note)
    return _without_ray(host) if request.joined_by == Distributed.RAY else None


@lru_cache(maxsize=32_768)
def is_peer_address(bind: str) -> bool:
    """Whether other hosts can reach an address."""
    address = ip_address(bind)
    return not (address.is_loopback or address.is_unspecified)


def join_seats(
    request: Request, seats: Sequence[Seat], hosts: Mapping[str, HostSnapshot]
) -> tuple[Seat, ...]:
    """The seats of one replica with their link ports, the leader's first; one seat stays unchanged.

    The leader holds the ports where the hosts meet. A follower holds one port, the first of the
    engine's own. The given seats have only their serving ports.
    """
    if len(seats) < 2:
        return tuple(seats)
    return tuple(
        seat.model_copy(update=_linked(request, seat, at, hosts[seat.host]))
        for at, seat in enumerate(seats)
    )


def require_ports(spec: ModelSpec, fleet: Fleet, engine: EngineTraits) -> None:
    """Raise `BAD_SPEC` if too few hosts have a port range large enough to lead the replica."""
    span = spec.placement.hosts
    stated = engine.parallelism(spec)
    kinds = _of_leader(engine.joined_by(spec), stated is not None and stated.data > 1)
    needed = 1 + len(kinds)
    narrow = [host for host in fleet.hosts if len(range(*host.port_range)) + 1 < needed]
    able = len(fleet.hosts) - len(narrow)
    if span == "auto" or span < 2 or not narrow or able >= span:
        return
    first = narrow[0]
    raise Failure(
        Cause.BAD_SPEC,
        f"placement.hosts: {span} hosts need {needed} ports each ({_uses(kinds)}), but"
        f" {first.name} has `ports: {first.ports}`",
        suggestion=f"Widen `hosts.{first.name}.ports` in the fleet file, or use fewer hosts.",
    )


def _linked(request: Request, seat: Seat, at: int, host: HostSnapshot) -> dict[str, object]:
    ray = host.ray_range if request.joined_by == Distributed.RAY else None
    if at:
        (own,) = free_ports(host, 1)
        links = Links(own=own, ray=ray)
        return {"role": Role.FOLLOWER, "position": at, "port": own, "links": links}
    kinds = _kinds(request)
    ports = dict(zip(kinds, free_ports(host, len(kinds), taken=(seat.port,)), strict=True))
    return {"role": Role.LEADER, "links": Links(**ports, ray=ray)}


def _kinds(request: Request) -> tuple[str, ...]:
    # The peer's rules give natively joined hosts a copy of the model each.
    copies = request.stated.data > 1 if request.stated else by_baseline_rules(request.spec)
    return _of_leader(request.joined_by, copies)


def _of_leader(joined_by: Distributed, copies: bool) -> tuple[str, ...]:
    """Ports of a leader next to its serving port; `copies`: hosts hold data-parallel ranks."""
    if joined_by == Distributed.RAY:
        return ("rpc", "own")
    return ("rpc", "master", "own", "joining") if copies else ("master",)


def _uses(kinds: tuple[str, ...]) -> str:
    return ", ".join(("serving", *(USES[kind] for kind in kinds)))


def _without_ray(host: HostSnapshot) -> Refusal | None:
    """Why no Ray cluster can be started on a host."""
    if RuntimeName.DOCKER not in host.runtimes:
        return Refusal(Reason.ENGINE, "a Ray cluster is started in containers only")
    (low, high), (first, last) = host.port_range, host.ray_range
    if low <= last and first <= high:
        return Refusal(Reason.PORT, f"Ray's ports {first}-{last} are among {low}-{high}")
    for port in range(first, first + RAY_SERVICES):
        if refusal := port_refusal(host, port, " of Ray"):
            return refusal
    return None
