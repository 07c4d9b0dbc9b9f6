"""A seat on one host: which of its accelerators, how much of its RAM, which port.

The need is estimated from the size of the weights alone: `1.2 x weights + 2 GiB`. Where a model
gets accelerators, it claims `UTILIZATION` of each one's memory, as vLLM really takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moorage.engines.base import Engine
from moorage.models.profile import ModelProfile
from moorage.placement.claims import Resource
from moorage.placement.filters import Refused
from moorage.placement.fit import allocatable_memory, allocatable_ram, free_ports, misfits
from moorage.placement.placement import CPU, Refusal, Seat
from moorage.placement.runtime import choose_runtime
from moorage.placement.snapshot import Accelerator, HostSnapshot
from moorage.spec import ModelSpec, RuntimeName
from moorage.units import GIB, human_bytes

UTILIZATION = 0.9
"""Share of an accelerator that an engine takes; below vLLM's 0.92 to leave room for its context."""

WEIGHT_FACTOR = 1.2
OVERHEAD_BYTES = 2 * GIB

REFUSALS = {
    Resource.RAM: Refusal.RAM,
    Resource.PORT: Refusal.PORT,
    Resource.ACCELERATOR: Refusal.ACCELERATOR_MEMORY,
}


def estimate_need(weight_bytes: int) -> int:
    """Bytes of accelerator memory that a model is thought to need in all."""
    return int(weight_bytes * WEIGHT_FACTOR) + OVERHEAD_BYTES


def find_seat(
    spec: ModelSpec, profile: ModelProfile, host: HostSnapshot, engine: Engine, replica: int
) -> Seat:
    """The best seat that a host can offer to one replica.

    Raises:
        Refused: With the named reason and its numbers.
    """
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
    need, available = estimate_need(profile.weight_bytes), sum(_share(item) for item in ready)
    counts = [n for n in _counts(spec, len(group)) if n <= len(ready)]
    enough = [n for n in counts if n * min(map(_share, ready[:n])) >= need]
    if enough:
        heads = profile.attention_heads
        text = f"{' or '.join(map(str, enough))} do not divide {heads} attention heads"
        return Refused(Refusal.PARALLELISM, text)
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
            refusal = REFUSALS[claim.resource]
            available = allocatable_ram(host) if refusal == Refusal.RAM else 0
            raise Refused(refusal, reason, claim.amount, available)
    return seat
