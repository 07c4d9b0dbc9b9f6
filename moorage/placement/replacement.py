"""Where a release goes that replaces another: beside it, instead of it, or back where one ran."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from moorage.common.refusal import Reason
from moorage.images.image import Image
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.placement.explanation import Verdict
from moorage.placement.fit import free_ports, misfits
from moorage.placement.placement import CPU, Placement, Seat
from moorage.spec import ModelSpec, ReplaceStrategy


@dataclass(frozen=True, slots=True)
class ReplacementPolicy:
    """The ways in which a release may find its place.

    Attributes:
        strategy: As the spec says.
        running: Release of the same model that serves now and could be started again; empty = none.
    """

    strategy: ReplaceStrategy
    running: str

    @property
    def beside(self) -> bool:
        """Whether it may start while the other one serves; it may if there is none."""
        return not self.running or self.strategy != ReplaceStrategy.STOP_FIRST

    @property
    def instead(self) -> bool:
        """Whether the other one may stop for it."""
        return bool(self.running) and self.strategy in (
            ReplaceStrategy.AUTO,
            ReplaceStrategy.STOP_FIRST,
        )

    def why(self, no_room: str) -> str:
        """Why the other one stops first.

        Args:
            no_room: Why there is no place beside it.
        """
        if self.strategy == ReplaceStrategy.STOP_FIRST:
            return f"{self.running} stops first: `replace.strategy` says so"
        return f"{self.running} must stop first: {no_room}"

    @property
    def remedy(self) -> str:
        """What would make it fit where only the strategy keeps it from its place."""
        return (
            f"It fits instead of {self.running}, but `replace.strategy: {self.strategy}` asks for"
            " room beside it: `auto` or `stop-first` would stop it first."
        )


def restore_placement(
    spec: ModelSpec, before: Placement, source: str, fleet: FleetSnapshot, running: str = ""
) -> Placement | tuple[str, ...]:
    """The placement of an earlier release, beside what runs or instead of it.

    Its ports are kept where they are free; else others are taken, unless the spec fixes them.

    Args:
        spec: What was asked for then.
        before: Where it ran.
        source: The release that ran there.
        fleet: The hosts with all claims.
        running: Release of the same model that serves now; empty = none.

    Returns:
        The placement, or why it cannot be had again.
    """
    if reasons := missing_parts(before.seats, fleet):
        return reasons
    keeps_ports = spec.port != "auto"
    beside, reasons = _fitted(before.seats, fleet, keeps_ports, spec.placement.overcommit)
    ways = ReplacementPolicy(spec.replace.strategy, running)
    if beside and ways.beside:
        return _placement(before, beside, source, fleet)
    if ways.instead:
        room = fleet.without(running)
        instead, left = _fitted(before.seats, room, keeps_ports, spec.placement.overcommit)
        if instead:
            placement = _placement(before, instead, source, fleet)
            return placement.model_copy(update={"stop_first": ways.why("; ".join(reasons))})
        return left
    return reasons


def missing_parts(seats: Iterable[Seat], fleet: FleetSnapshot) -> tuple[str, ...]:
    """What seats had and is not there any more: hosts, runtimes, accelerators; empty = all is."""
    hosts = {host.name: host for host in fleet.hosts}
    reasons = (_lost(seat, hosts.get(seat.host)) for seat in seats)
    return tuple(dict.fromkeys(reason for reason in reasons if reason))


def pinned_spec(spec: ModelSpec, before: Placement, image: Image | None) -> ModelSpec:
    """A spec that goes only where the image and the engine of an earlier release can run."""
    first = before.seats[0]
    engine, place = spec.engine, spec.placement
    known = image.engine_version if image else ""
    engine = engine.model_copy(
        update={
            "name": before.engine,
            "runtime": first.runtime,
            "image": image.pinned if image else engine.image,
            "version": engine.version or known or None,
        }
    )
    if place.accelerators == "auto" and first.accelerator_type == CPU:
        place = place.model_copy(update={"accelerators": 0})
    elif not place.accelerator_kinds and first.accelerator_type != CPU:
        place = place.model_copy(update={"accelerator_kinds": (first.accelerator_type,)})
    return spec.model_copy(update={"engine": engine, "placement": place})


def move_reason(before: Placement, source: str, reasons: Iterable[str]) -> str:
    """Why a release is not where an earlier one ran, in words."""
    hosts = ", ".join(dict.fromkeys(seat.host for seat in before.seats))
    return f"{source} ran on {hosts}, which cannot be had again: {'; '.join(reasons)}"


def _lost(seat: Seat, host: HostSnapshot | None) -> str:
    if host is None:
        return f"{seat.host} is not in the fleet any more"
    if host.unreachable:
        return f"{seat.host} cannot be reached: {host.unreachable}"
    if seat.runtime not in host.runtimes:
        return f"{seat.host} has no runtime {seat.runtime} any more"
    there = {(item.type, item.index) for item in host.accelerators}
    missing = [one for one in seat.accelerators if (seat.accelerator_type, one) not in there]
    names = ", ".join(f"{seat.accelerator_type}:{index}" for index in missing)
    return f"{names} of {seat.host} is not there any more" if missing else ""


def _fitted(
    seats: tuple[Seat, ...], fleet: FleetSnapshot, keeps_ports: bool, overcommit: bool
) -> tuple[tuple[Seat, ...], tuple[str, ...]]:
    """The seats with ports that are free, or why they do not fit."""
    if not keeps_ports:
        seats = _with_ports(seats, fleet)
    reasons: list[str] = []
    for name in dict.fromkeys(seat.host for seat in seats):
        claims = [claim for seat in seats if seat.host == name for claim in seat.claims]
        found = misfits(fleet.host(name), claims, overcommit=overcommit)
        reasons += [f"{name}: {reason}" for reason in found]
    return (() if reasons else seats), tuple(reasons)


def _with_ports(seats: tuple[Seat, ...], fleet: FleetSnapshot) -> tuple[Seat, ...]:
    """Seats with their own ports where those are free, else with the lowest that are.

    A seat with several ports keeps them: they are parts of one whole.
    """
    fresh: list[Seat] = []
    for seat in seats:
        host = fleet.host(seat.host)
        own = [*seats, *fresh]
        taken = [claim.index for other in own if other.host == seat.host for claim in _ports(other)]
        if len(list(_ports(seat))) == 1 and not _is_free(host, seat.port):
            ports = free_ports(host, 1, taken)
            seat = seat.model_copy(update={"port": ports[0]}) if ports else seat
        fresh.append(seat)
    return tuple(fresh)


def _ports(seat: Seat) -> Iterable[Claim]:
    return (claim for claim in seat.claims if claim.resource == Resource.PORT)


def _is_free(host: HostSnapshot, port: int) -> bool:
    return port not in host.ports_in_use and not host.claimed(Resource.PORT, port)


def _placement(
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
    return before.model_copy(
        update={
            "seats": seats,
            "verdicts": verdicts,
            "terms": (),
            "troubles": (),
            "stop_first": "",
            "moved": "",
        }
    )
