"""`--mem-fraction-static`: the share of free memory that weights and key/value cache take.

SGLang 0.5.23 sizes its cache as `free after loading - free before loading x (1 - fraction)`
(`mem_cache/kv_cache_configurator.py`, `_profile_available_bytes`). So the fraction counts of the
memory that is free when it starts, not of the whole accelerator, and weights and cache of the claim
have to be that share of it.
"""

from math import ceil

from moorage.engines.request import LaunchRequest
from moorage.engines.seat import claimed_accelerators
from moorage.inventory.claims import Resource
from moorage.placement.placement import Seat

DYNAMIC = ("activation", "cuda_graphs", "buffers")
"""Parts of a prediction that SGLang takes from what the fraction leaves."""

STEPS = 1000
LARGEST = 0.99


def static_fraction(request: LaunchRequest) -> float | None:
    """The smallest fraction, in thousandths, that holds weights and cache of the claim."""
    seat = request.seat
    if not seat.accelerators or seat.need is None:
        return None
    free = min(
        item.memory_total - _others(request, item.index) - seat.need.outside
        for item in claimed_accelerators(request)
    )
    if free <= 0:
        return LARGEST
    return min(LARGEST, max(1, ceil(_static(seat) / free * STEPS)) / STEPS)


def token_limit(request: LaunchRequest) -> int | None:
    """Tokens of the cache on accelerators that others claim too; None = no limit.

    More may be free at the start than the others claim. The cache must not take that.
    """
    need = request.seat.need
    cache = need.term("kv_cache") if need else None
    if not (need and cache and cache.bytes):
        return None
    if not any(_others(request, index) for index in request.seat.accelerators):
        return None
    fixed = sum(term.bytes for term in need.terms if term.inside and term.name not in DYNAMIC)
    room = max(cache.bytes, _static(request.seat) - fixed + cache.bytes)
    return int(room * need.tokens * need.concurrency / cache.bytes)


def _static(seat: Seat) -> int:
    """Bytes of the claim for weights, adapters, draft model and cache."""
    assert seat.need is not None
    later = sum(term.bytes for term in seat.need.terms if term.inside and term.name in DYNAMIC)
    return max(0, min(seat.accelerator_bytes) - seat.need.outside - later)


def _others(request: LaunchRequest, index: int) -> int:
    """Bytes of an accelerator that other releases claim."""
    return sum(
        claim.amount
        for claim in request.host.claims
        if claim.resource == Resource.ACCELERATOR and claim.index == index
        if claim.release != request.release
    )
