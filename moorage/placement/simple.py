"""The simple policy: filter the hosts, find a seat on each, take the best by the strategy."""

from __future__ import annotations

from moorage.engines.base import Engine
from moorage.models.profile import ModelProfile
from moorage.placement.filters import FILTERS, Refused
from moorage.placement.placement import Placement, Seat, Verdict
from moorage.placement.seats import find_seat
from moorage.placement.snapshot import FleetSnapshot, HostSnapshot
from moorage.spec import ModelSpec, Strategy
from moorage.values import Origin


def place(
    spec: ModelSpec,
    profile: ModelProfile,
    fleet: FleetSnapshot,
    engine: Engine,
    origin: Origin,
    why: str,
) -> Placement:
    """Choose hosts, accelerators and ports for every replica. Nothing is reserved yet.

    Returns:
        A placement with one seat a replica, or with none and a refusal for each host.
    """
    seats: list[Seat] = []
    verdicts: tuple[Verdict, ...] = ()
    for replica in range(spec.replicas):
        seat, verdicts = _place_replica(spec, profile, fleet, engine, replica)
        if seat is None:
            seats = []
            break
        seats.append(seat)
        fleet = _with_seat(fleet, seat)
    return Placement(
        engine=engine.name,
        engine_origin=origin,
        engine_reason=why,
        seats=tuple(seats),
        verdicts=verdicts,
    )


def _place_replica(
    spec: ModelSpec, profile: ModelProfile, fleet: FleetSnapshot, engine: Engine, replica: int
) -> tuple[Seat | None, tuple[Verdict, ...]]:
    offers: dict[str, Seat] = {}
    verdicts: list[Verdict] = []
    for host in fleet.hosts:
        try:
            for check in FILTERS:
                check(spec, host)
            seat = find_seat(spec, profile, host, engine, replica)
        except Refused as refused:
            verdicts.append(
                Verdict(
                    host=host.name,
                    refusal=refused.refusal,
                    detail=refused.detail,
                    needed=refused.needed,
                    available=refused.available,
                )
            )
        else:
            offers[host.name] = seat
            verdicts.append(Verdict(host=host.name, detail=seat.reason))
    if not offers:
        return None, tuple(verdicts)
    ranked = sorted(
        (host for host in fleet.hosts if host.name in offers),
        key=_fullness,
        reverse=spec.placement.strategy == Strategy.BINPACK,
    )
    return offers[ranked[0].name], tuple(verdicts)


def _fullness(host: HostSnapshot) -> float:
    """Share of the host's memory that is claimed, accelerators before RAM."""
    total = sum(item.memory_total for item in host.accelerators) or host.ram_total or 1
    kind = "accelerator" if host.accelerators else "ram"
    return sum(claim.amount for claim in host.claims if claim.resource == kind) / total


def _with_seat(fleet: FleetSnapshot, seat: Seat) -> FleetSnapshot:
    hosts = (_taken(host, seat) if host.name == seat.host else host for host in fleet.hosts)
    return FleetSnapshot(hosts=tuple(hosts))


def _taken(host: HostSnapshot, seat: Seat) -> HostSnapshot:
    """The host as the next replica finds it: claimed, and no longer free either."""
    held = dict(zip(seat.accelerators, seat.accelerator_bytes, strict=True))
    free = {item.index: item.memory_free - held.get(item.index, 0) for item in host.accelerators}
    return host.model_copy(
        update={
            "claims": (*host.claims, *seat.claims),
            "ram_free": max(0, host.ram_free - seat.ram_bytes),
            "accelerators": tuple(
                item.model_copy(update={"memory_free": max(0, free[item.index])})
                for item in host.accelerators
            ),
        }
    )
