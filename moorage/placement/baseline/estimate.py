"""What a model is taken to need: the 1.2x rule, without cache, context or quantisation."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from moorage.common.units import GIB, MIB
from moorage.placement.baseline.request import BaselineRequest, CacheInRam

ACTIVATION_FACTOR = 1.2
SPEECH_FACTOR = 3
LLM_OVERHEAD = 2 * GIB
OTHER_OVERHEAD = 512 * MIB


def memory_claim(request: BaselineRequest) -> int:
    """Bytes of accelerator memory that a replica needs in all.

    Weights that could not be measured count as nothing (the peer's defect 1).
    """
    if request.claim_override is not None:
        return request.claim_override
    weights = request.weight_bytes or 0
    if "image" in request.categories:
        return weights
    speech = "text_to_speech" in request.categories
    factor = SPEECH_FACTOR if speech else ACTIVATION_FACTOR
    return int((weights + request.lora_bytes) * factor) + _overhead(request.categories)


def ram_need(cache: CacheInRam | None) -> int:
    """Bytes of RAM that each host must have free; a cache sized by ratio asks for none."""
    if cache is None or not cache.enabled or not cache.size or cache.size < 0:
        return 0
    return cache.size


def ram_claim(cache: CacheInRam | None, memory: Mapping[int, int]) -> int:
    """Bytes of RAM that go with the accelerator memory taken on one host."""
    if need := ram_need(cache):
        return need
    if cache is None or not cache.enabled or not memory or not cache.ratio or cache.ratio < 0:
        return 0
    return int(sum(memory.values()) * cache.ratio)


def _overhead(categories: Collection[str]) -> int:
    return LLM_OVERHEAD if not categories or "llm" in categories else OTHER_OVERHEAD
