"""The simple policy: one accelerator, several on one host, or CPU and RAM.

The need is estimated from the size of the weights alone: `1.2 x weights + 2 GiB`. Where a model
gets accelerators, it claims `UTILIZATION` of each one's memory, as vLLM really takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from moorage.engines.base import Engine
from moorage.models.profile import ModelProfile
from moorage.placement.fit import allocatable_memory, allocatable_ram, free_ports, misfits
from moorage.placement.placement import CPU, Placement, Refusal, Seat, Verdict
from moorage.placement.runtime import choose_runtime
from moorage.placement.snapshot import Accelerator, FleetSnapshot, HostSnapshot
from moorage.spec import ModelSpec, RuntimeName, Strategy
from moorage.units import GIB, human_bytes
from moorage.values import Origin

UTILIZATION = 0.9
"""Share of an accelerator that an engine takes; below vLLM's 0.92 to leave room for its context."""

WEIGHT_FACTOR = 1.2
OVERHEAD_BYTES = 2 * GIB


class Refused(Exception):
    """A host cannot take the model."""

    def __init__(self, refusal: Refusal, detail: str, needed: int = 0, available: int = 0) -> None:
        super().__init__(refusal, detail)
        self.refusal, self.detail = refusal, detail
        self.needed, self.available = needed, available


def estimate_need(weight_bytes: int) -> int:
    """Bytes of accelerator memory that a model is thought to need in all."""
    return int(weight_bytes * WEIGHT_FACTOR) + OVERHEAD_BYTES


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
            seat = _offer(spec, profile, host, engine, replica)
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


def _offer(
    spec: ModelSpec, profile: ModelProfile, host: HostSnapshot, engine: Engine, replica: int
) -> Seat:
    for check in CHECKS:
        check(spec, host)
    port = _port(spec, host)
    refused: Refused | None = None
    for kind, group in _groups(spec, host, engine):
        try:
            runtime = choose_runtime(spec, engine, host, kind)
            if isinstance(runtime, str):
                raise Refused(Refusal.ENGINE, runtime)
            if kind == CPU:
                return _cpu_seat(spec, profile, host, engine, replica, runtime.name, port)
            return _accelerator_seat(spec, profile, host, group, replica, runtime.name, port)
        except Refused as reason:
            refused = refused or reason
    raise refused or Refused(Refusal.NO_ACCELERATOR, _no_accelerator(spec, host, engine))


def _is_reachable(_spec: ModelSpec, host: HostSnapshot) -> None:
    if host.unreachable:
        raise Refused(Refusal.UNREACHABLE, host.unreachable)


def _has_labels(spec: ModelSpec, host: HostSnapshot) -> None:
    wanted = spec.placement.host_labels
    differ = [f"{k}={v}" for k, v in wanted.items() if host.labels.get(k) != v]
    if differ:
        raise Refused(Refusal.LABELS, f"lacks {', '.join(differ)}")


def _is_selected(spec: ModelSpec, host: HostSnapshot) -> None:
    chosen = spec.placement.accelerators
    if not isinstance(chosen, tuple):
        return
    hosts = {identity.split(":")[0] for identity in chosen}
    if len(hosts) > 1:
        raise Refused(Refusal.ONE_HOST_ONLY, f"accelerators of {len(hosts)} hosts are selected")
    if host.name not in hosts:
        raise Refused(Refusal.NOT_SELECTED, f"the spec selects {', '.join(sorted(hosts))}")
    if len({identity.split(":")[1] for identity in chosen}) > 1:
        raise Refused(Refusal.MIXED_TYPES, "the selected accelerators are of several types")


CHECKS: tuple[Callable[[ModelSpec, HostSnapshot], None], ...] = (
    _is_reachable,
    _has_labels,
    _is_selected,
)
"""What a host must pass before its resources are looked at, in this order."""


def _port(spec: ModelSpec, host: HostSnapshot) -> int:
    if spec.port != "auto":
        return spec.port
    free = free_ports(host, 1)
    if not free:
        low, high = host.port_range
        raise Refused(Refusal.PORT, f"every port of {low}-{high} is taken")
    return free[0]


def _groups(
    spec: ModelSpec, host: HostSnapshot, engine: Engine
) -> Iterator[tuple[str, list[Accelerator]]]:
    """The accelerators to consider, by type; CPU where none are asked for or none are there."""
    wanted = spec.placement.accelerators
    items = [item for item in host.accelerators if item.type in engine.accelerator_types]
    if wanted == 0 or (wanted == "auto" and not items):
        if engine.runs_on_cpu:
            yield CPU, []
        return
    if isinstance(wanted, tuple):
        items = [i for i in items if f"{host.name}:{i.type}:{i.index}" in wanted]
    for kind in dict.fromkeys(item.type for item in items):
        group = [item for item in items if item.type == kind]
        if len(group) >= _counts(spec, len(group))[0]:
            yield kind, group


def _no_accelerator(spec: ModelSpec, host: HostSnapshot, engine: Engine) -> str:
    there = ", ".join(f"{i.type}:{i.index}" for i in host.accelerators) or "none"
    wanted = spec.placement.accelerators
    asked = ", ".join(wanted) if isinstance(wanted, tuple) else wanted
    return f"accelerators asked for: {asked}; {engine.name} can use here: {there}"


def _cpu_seat(
    spec: ModelSpec,
    profile: ModelProfile,
    host: HostSnapshot,
    engine: Engine,
    replica: int,
    runtime: RuntimeName,
    port: int,
) -> Seat:
    ram = engine.ram_on_cpu(profile) if spec.placement.ram == "auto" else int(spec.placement.ram)
    seat = Seat(
        replica=replica,
        host=host.name,
        runtime=runtime,
        ram_bytes=ram,
        port=port,
        reason=f"CPU with {human_bytes(ram)} of {human_bytes(allocatable_ram(host))} free RAM",
    )
    return _checked(host, seat)


def _accelerator_seat(
    spec: ModelSpec,
    profile: ModelProfile,
    host: HostSnapshot,
    group: Sequence[Accelerator],
    replica: int,
    runtime: RuntimeName,
    port: int,
) -> Seat:
    need = estimate_need(profile.weight_bytes)
    ready = [i for i in group if allocatable_memory(host, i.index) >= _share(i)]
    ready.sort(key=lambda item: -allocatable_memory(host, item.index))
    for count in _counts(spec, len(group)):
        chosen = ready[:count]
        if len(chosen) < count or not _divides(profile, count):
            continue
        share = min(map(_share, chosen))
        if share * count < need:
            continue
        chosen.sort(key=lambda item: item.index)
        seat = Seat(
            replica=replica,
            host=host.name,
            runtime=runtime,
            accelerator_type=chosen[0].type,
            accelerators=tuple(item.index for item in chosen),
            accelerator_bytes=tuple(map(_share, chosen)),
            ram_bytes=0 if spec.placement.ram == "auto" else int(spec.placement.ram),
            port=port,
            utilization=UTILIZATION,
            reason=f"{count} x {chosen[0].name or chosen[0].type}, {human_bytes(share)} of each;"
            f" {human_bytes(need)} needed",
        )
        return _checked(host, seat)
    raise _refuse_accelerators(spec, profile, host, group, ready)


def _refuse_accelerators(
    spec: ModelSpec,
    profile: ModelProfile,
    host: HostSnapshot,
    group: Sequence[Accelerator],
    ready: Sequence[Accelerator],
) -> Refused:
    counts = _counts(spec, len(group))
    if not any(_divides(profile, count) for count in counts):
        heads = profile.attention_heads
        return Refused(Refusal.PARALLELISM, f"{counts[0]} do not divide {heads} attention heads")
    need, available = estimate_need(profile.weight_bytes), sum(_share(item) for item in ready)
    holders = sorted({c.release for c in host.claims if c.release and c.resource == "accelerator"})
    held = f"; held by {', '.join(holders)}" if holders else ""
    return Refused(
        Refusal.ACCELERATOR_MEMORY,
        f"{human_bytes(need)} needed, {human_bytes(available)} available on"
        f" {len(ready)} of {len(group)} accelerators with {UTILIZATION:.0%} free{held}",
        needed=need,
        available=available,
    )


def _counts(spec: ModelSpec, there: int) -> list[int]:
    wanted = spec.placement.accelerators
    if isinstance(wanted, tuple):
        return [len(wanted)]
    # The fewest that do come first: each further one is taken from somebody else.
    return list(range(1, there + 1)) if wanted == "auto" else [int(wanted)]


def _divides(profile: ModelProfile, count: int) -> bool:
    return not profile.attention_heads or profile.attention_heads % count == 0


def _share(item: Accelerator) -> int:
    return int(item.memory_total * UTILIZATION)


def _checked(host: HostSnapshot, seat: Seat) -> Seat:
    for claim in seat.claims:
        for reason in misfits(host, [claim]):
            refusal = {
                "ram": Refusal.RAM,
                "port": Refusal.PORT,
                "accelerator": Refusal.ACCELERATOR_MEMORY,
            }[claim.resource]
            available = allocatable_ram(host) if refusal == Refusal.RAM else 0
            raise Refused(refusal, reason, claim.amount, available)
    return seat


def _fullness(host: HostSnapshot) -> float:
    """Share of the host's memory that is claimed, accelerators before RAM."""
    total = sum(item.memory_total for item in host.accelerators) or host.ram_total or 1
    kind = "accelerator" if host.accelerators else "ram"
    return sum(claim.amount for claim in host.claims if claim.resource == kind) / total


def _with_seat(fleet: FleetSnapshot, seat: Seat) -> FleetSnapshot:
    return FleetSnapshot(
        hosts=tuple(
            host.with_claims((*host.claims, *seat.claims)) if host.name == seat.host else host
            for host in fleet.hosts
        )
    )
