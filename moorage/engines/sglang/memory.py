"""SGLang's arguments for the memory of its claim."""

from moorage.engines.flags import Flag, derived_flag
from moorage.engines.request import LaunchRequest
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.memory.need import Need
from moorage.memory.static_part import FRACTION, after_cache, before_loading, least_static
from moorage.placement.fit import claimed_amounts
from moorage.placement.placement import Seat

STEPS = 1000
LARGEST = 0.99


def memory_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """The fraction of the free memory, and a limit of tokens beside other claims.

    All hosts of a replica get the same, since its ranks have to come to one size of the cache.
    """
    seats = [(peer.host, peer.seat) for peer in request.peers] or [(request.host, request.seat)]
    need = request.seat.need
    if need is None or not request.seat.accelerators:
        return ()
    static = min(_static(seat, need) for _, seat in seats)
    others = [_others(host, index, request) for host, seat in seats for index in seat.accelerators]
    free = min(_free(*pair, need, request) for pair in seats)
    share = "weights and cache of the claim, of what is free when it starts"
    shared = "others claim a part of the accelerator: the cache stays within the claim"
    limit = _token_limit(need, static) if any(others) else 0
    return (
        derived_flag(share, FRACTION, f"{_fraction(need, static, free):g}"),
        *([derived_flag(shared, "--max-total-tokens", str(limit))] if limit else []),
    )


def _fraction(need: Need, static: int, free: int) -> float:
    """The `--mem-fraction-static`, in thousandths, whose part of the free memory is the claim's.

    SGLang 0.5.23 sizes its cache as `free after loading - free before loading x (1 - fraction)`
    (`mem_cache/kv_cache_configurator.py`, `_profile_available_bytes`), with the least of all ranks.
    So the fraction applies to the memory that is free at the start, not to the whole accelerator.
    It is rounded down, which leaves what is taken later its memory, unless weights and cache then
    have too little.
    """
    if free <= 0:
        return LARGEST
    steps = static * STEPS // free
    if free * steps < least_static(need) * STEPS:
        steps += 1
    return min(LARGEST, max(1, steps) / STEPS)


def _token_limit(need: Need, static: int) -> int:
    """Tokens of the cache on accelerators that other releases claim too; 0 = no limit.

    At the start, others may not have taken all of their claims yet. The cache must not take those.
    """
    cache = need.term("kv_cache")
    if not cache or not cache.bytes:
        return 0
    room = max(cache.bytes, static - least_static(need) + cache.bytes)
    return int(room * need.tokens * need.concurrency / cache.bytes)


def _static(seat: Seat, need: Need) -> int:
    """Bytes of the claim for weights, adapters, draft model and cache."""
    return max(0, min(seat.accelerator_bytes) - before_loading(need) - after_cache(need))


def _free(host: HostSnapshot, seat: Seat, need: Need, request: LaunchRequest) -> int:
    """Bytes that are free on each accelerator of a seat when the engine starts to load."""
    claimed, pending = claimed_amounts(host.claims)
    free = []
    for item in host.accelerators:
        if item.type != seat.accelerator_type or item.index not in seat.accelerators:
            continue
        settled = claimed.get(item.index, 0) - pending.get(item.index, 0)
        strangers = max(0, item.memory_total - item.memory_free - settled)
        free.append(item.memory_total - strangers - _others(host, item.index, request))
    return min(free) - before_loading(need)


def _others(host: HostSnapshot, index: int, request: LaunchRequest) -> int:
    """Bytes of an accelerator that other releases claim."""
    return sum(
        claim.amount
        for claim in host.claims
        if claim.resource == Resource.ACCELERATOR and claim.index == index
        if claim.release != request.release
    )
