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
from moorage.placement.fit import free_block, free_ports, port_refusal
from moorage.placement.placement import RAY_SERVICES, Links, Seat
from moorage.placement.request import Request
from moorage.placement.role import Role
from moorage.spec import Distributed, ModelSpec, NetworkMode, RuntimeName

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


def meeting_refusal(request: Request, host: HostSnapshot) -> Refusal | None:
    """Why the ranks of an engine that derives ports cannot meet on a host; None = they can."""
    count, stated = request.engine.meeting_ports(request.spec), request.spec.port
    serving = free_ports(host, 1) if stated == "auto" else [stated]
    if free_block([host], count, serving):
        return None
    low, high = host.port_range
    return Refusal(Reason.PORT, f"{count} consecutive free ports of {low}-{high} are needed")


@lru_cache(maxsize=32_768)
def is_peer_address(bind: str) -> bool:
    """Whether other hosts can reach an address."""
    address = ip_address(bind)
    return not (address.is_loopback or address.is_unspecified)


def join_seats(
    request: Request, seats: Sequence[Seat], hosts: Mapping[str, HostSnapshot]
) -> tuple[Seat, ...]:
    """The seats of one replica with their link ports, the leader's first.

    The leader holds the ports where the hosts meet. A follower holds one port, the first of the
    engine's own. Ports that the engine derives are held on every host, since each checks that they
    are free; on one host, unless it has a network of its own. The given seats have only their
    serving ports.
    """
    alone = len(seats) < 2
    if alone and not all(shares_network(request.spec, seat.runtime) for seat in seats):
        return tuple(seats)
    meeting = _meeting(request, seats, hosts)
    if alone:
        return tuple(seat.model_copy(update={"links": meeting}) for seat in seats)
    return tuple(
        seat.model_copy(update=_linked(request, seat, at, hosts[seat.host], meeting))
        for at, seat in enumerate(seats)
    )


def require_ports(spec: ModelSpec, fleet: Fleet, engine: EngineTraits) -> None:
    """Raise `BAD_SPEC` if too few hosts have a port range large enough to lead the replica."""
    span = spec.placement.hosts
    stated = engine.parallelism(spec)
    kinds = _of_leader(engine.joined_by(spec), stated is not None and stated.data > 1)
    needed = 1 + len(kinds) + max(0, engine.meeting_ports(spec) - 1)
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


def shares_network(spec: ModelSpec, runtime: RuntimeName) -> bool:
    """Whether the engine opens its ports on the host itself."""
    in_container = runtime == RuntimeName.DOCKER
    return not in_container or spec.engine.container.network == NetworkMode.HOST


def _meeting(
    request: Request, seats: Sequence[Seat], hosts: Mapping[str, HostSnapshot]
) -> Links | None:
    """The block of ports that the engine derives, the same on every host; None = it derives none.

    Raises:
        Failure: `PORT_TAKEN` when the hosts have no such block in common.
    """
    count, names = request.engine.meeting_ports(request.spec), [seat.host for seat in seats]
    if not count:
        return None
    block = free_block([hosts[name] for name in names], count, [seat.port for seat in seats])
    if not block:
        raise Failure(
            Cause.PORT_TAKEN,
            f"{', '.join(names)} have no {count} consecutive free ports in common, where the ranks"
            " meet",
            suggestion="Widen `hosts[].ports` in the fleet file, the same on these hosts.",
        )
    return Links(master=block[0], derived=count - 1)


def _linked(
    request: Request, seat: Seat, at: int, host: HostSnapshot, meeting: Links | None
) -> dict[str, object]:
    ray = host.ray_range if request.joined_by == Distributed.RAY else None
    shared = meeting.model_dump(include={"master", "derived"}) if meeting else {}
    held = meeting.ports if meeting else ()
    if at:
        (own,) = free_ports(host, 1, taken=held)
        links = Links(**{**shared, "own": own, "ray": ray})
        return {"role": Role.FOLLOWER, "position": at, "port": own, "links": links}
    kinds = [kind for kind in _kinds(request) if not (meeting and kind == "master")]
    ports = dict(zip(kinds, free_ports(host, len(kinds), taken=(seat.port, *held)), strict=True))
    return {"role": Role.LEADER, "links": Links(**{**ports, **shared, "ray": ray})}


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
