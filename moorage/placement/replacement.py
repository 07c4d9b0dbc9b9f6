"""Where a replacing release goes: next to the other, in its place, or where an earlier one ran."""

from collections.abc import Iterable
from dataclasses import dataclass

from moorage.common.refusal import Reason, Refusal
from moorage.images.image import Image
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.placement.explanation import Verdict
from moorage.placement.fit import free_ports, misfits, port_refusal
from moorage.placement.placement import CPU, Placement, Seat
from moorage.spec import ModelSpec, ReplaceStrategy


@dataclass(frozen=True, slots=True)
class ReplacementPolicy:
    """The replacements that `replace.strategy` allows.

    Attributes:
        running: Release of the same model that serves now and could be started again; empty = none.
    """

    strategy: ReplaceStrategy
    running: str

    @property
    def may_overlap(self) -> bool:
        """Whether the new release may start while the other one serves, or there is no other."""
        return not self.running or self.strategy != ReplaceStrategy.STOP_FIRST

    @property
    def may_stop_first(self) -> bool:
        """Whether the other one may stop for the new release."""
        stops = (ReplaceStrategy.AUTO, ReplaceStrategy.STOP_FIRST)
        return bool(self.running) and self.strategy in stops

    def stop_reason(self, obstacle: str) -> str:
        """Why the other one stops first."""
        if self.strategy == ReplaceStrategy.STOP_FIRST:
            return f"{self.running} stops first: `replace.strategy` says so"
        return f"{self.running} must stop first: {obstacle}"

    @property
    def remedy(self) -> str:
        """The change that would make it fit if only the strategy prevents it."""
        return (
            f"It fits instead of {self.running}, but `replace.strategy: {self.strategy}` asks for"
            " room for both: `auto` or `stop-first` would stop it first."
        )


def restore_placement(
    spec: ModelSpec, before: Placement, source: str, fleet: FleetSnapshot, running: str = ""
) -> Placement:
    """Restore an earlier release's placement, next to the running one or in its place.

    Ports that are free are kept; others are replaced, unless the spec fixes them.

    Raises:
        Refusal: `TAKEN` when its seats are missing or occupied.
    """
    if missing := missing_parts(before.seats, fleet):
        raise Refusal(Reason.TAKEN, "; ".join(missing))
    policy = ReplacementPolicy(spec.replace.strategy, running)
    own = tuple(_current_seat(seat, fleet.host(seat.host)) for seat in before.seats)
    seats, obstacles = _fit_seats(spec, own, fleet)
    if not obstacles and policy.may_overlap:
        return _restored(before, seats, source, fleet)
    if not policy.may_stop_first:
        raise Refusal(Reason.TAKEN, obstacles)
    seats, left = _fit_seats(spec, own, fleet.without(running))
    if left:
        raise Refusal(Reason.TAKEN, left)
    placement = _restored(before, seats, source, fleet)
    return placement.model_copy(update={"stop_first": policy.stop_reason(obstacles)})


def missing_parts(seats: Iterable[Seat], fleet: FleetSnapshot) -> tuple[str, ...]:
    """Hosts, runtimes and accelerators of seats that the fleet no longer has, as messages."""
    hosts = {host.name: host for host in fleet.hosts}
    reasons = (_missing_part(seat, hosts.get(seat.host)) for seat in seats)
    return tuple(dict.fromkeys(reason for reason in reasons if reason))


def pinned_spec(spec: ModelSpec, before: Placement, image: Image | None) -> ModelSpec:
    """The spec, pinned to the engine, runtime, image and accelerator type of an earlier release."""
    first = before.seats[0]
    engine, place = spec.engine, spec.placement
    version = engine.version or (image.engine_version if image else "")
    engine = engine.model_copy(
        update={
            "name": before.engine,
            "runtime": first.runtime,
            "image": image.pinned if image else engine.image,
            "version": version or None,
        }
    )
    if place.accelerators == "auto" and first.accelerator_type == CPU:
        place = place.model_copy(update={"accelerators": 0})
    elif not place.accelerator_kinds and first.accelerator_type != CPU:
        place = place.model_copy(update={"accelerator_kinds": (first.accelerator_type,)})
    return spec.model_copy(update={"engine": engine, "placement": place})


def move_reason(before: Placement, source: str, refusal: Refusal) -> str:
    """Why a release is not where an earlier one ran, in words."""
    hosts = ", ".join(dict.fromkeys(seat.host for seat in before.seats))
    return f"{source} ran on {hosts}, which cannot be had again: {refusal}"


def _missing_part(seat: Seat, host: HostSnapshot | None) -> str:
    if host is None:
        return f"{seat.host} is not in the fleet any more"
    if host.unreachable:
        return f"{seat.host} cannot be reached: {host.unreachable}"
    if seat.runtime not in host.runtimes:
        return f"{seat.host} has no runtime {seat.runtime} any more"
    kind, current = seat.accelerator_type, _current_seat(seat, host)
    there = {(item.type, item.index) for item in host.accelerators}
    missing = [f"{kind}:{index}" for index in current.accelerators if (kind, index) not in there]
    missing = missing or _lost_devices(seat, host)
    return f"{', '.join(missing)} of {seat.host} is not there any more" if missing else ""


def _lost_devices(seat: Seat, host: HostSnapshot) -> list[str]:
    """The devices of a seat that a host has no more; their indexes may be those of others now."""
    known = {item.uuid for item in host.accelerators if item.uuid}
    return [device for device in seat.devices if known and device not in known]


def _current_seat(seat: Seat, host: HostSnapshot) -> Seat:
    """The seat with the indexes that its devices have now, ascending.

    A driver numbers GPUs anew when one is lost.
    """
    now = {item.uuid: item.index for item in host.accelerators}
    if not seat.devices or not now.keys() >= set(seat.devices):
        return seat
    indexes = [now[device] for device in seat.devices]
    rows = sorted(zip(indexes, seat.accelerator_bytes, seat.devices, strict=True))
    names = ("accelerators", "accelerator_bytes", "devices")
    return seat.model_copy(update=dict(zip(names, zip(*rows, strict=True), strict=True)))


def _fit_seats(
    spec: ModelSpec, seats: tuple[Seat, ...], fleet: FleetSnapshot
) -> tuple[tuple[Seat, ...], str]:
    """The seats, moved to free ports, and why they do not fit; empty = they fit."""
    if spec.port == "auto":
        seats = _with_free_ports(seats, fleet)
    obstacles = []
    for name in dict.fromkeys(seat.host for seat in seats):
        claims = [claim for seat in seats if seat.host == name for claim in seat.claims]
        reasons = misfits(fleet.host(name), claims, overcommit=spec.placement.overcommit)
        obstacles += [f"{name}: {reason}" for reason in reasons]
    return seats, "; ".join(obstacles)


def _with_free_ports(seats: tuple[Seat, ...], fleet: FleetSnapshot) -> tuple[Seat, ...]:
    """The seats, with occupied ports replaced by the lowest free ones.

    A seat with several ports keeps them, because they belong together.
    """
    moved: list[Seat] = []
    for seat in seats:
        host = fleet.host(seat.host)
        others = [other for other in (*seats, *moved) if other.host == seat.host]
        taken = [claim.index for other in others for claim in _port_claims(other)]
        if len(_port_claims(seat)) == 1 and port_refusal(host, seat.port):
            ports = free_ports(host, 1, taken)
            seat = seat.model_copy(update={"port": ports[0]}) if ports else seat
        moved.append(seat)
    return tuple(moved)


def _port_claims(seat: Seat) -> list[Claim]:
    return [claim for claim in seat.claims if claim.resource == Resource.PORT]


def _restored(
    before: Placement, seats: tuple[Seat, ...], source: str, fleet: FleetSnapshot
) -> Placement:
    chosen = {seat.host for seat in seats}
    note = f"where {source} ran"
    verdicts = tuple(
        Verdict(host.name, None, note)
        if host.name in chosen
        else Verdict(host.name, Reason.NOT_SELECTED, f"it goes back to {note}")
        for host in fleet.hosts
    )
    cleared = {"terms": (), "troubles": (), "stop_first": "", "moved": ""}
    return before.model_copy(update={"seats": seats, "verdicts": verdicts, **cleared})
