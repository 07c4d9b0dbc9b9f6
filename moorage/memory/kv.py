"""The pool of KV blocks: what a block costs, how many there are, what fits.

Source: `v1/core/kv_cache_utils.py`: `_max_memory_usage_bytes_from_groups`,
`get_max_concurrency_for_kv_cache_config`, `_estimate_max_model_len_from_groups`,
`get_kv_cache_configs`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from moorage.memory.groups import KVGroup
from moorage.memory.search import largest
from moorage.memory.specs import KVSpec


def bytes_per_block(groups: Sequence[KVGroup]) -> int:
    """Bytes that one block id costs: the groups draw from one pool, so the widest counts."""
    return max((group.page_bytes for group in groups), default=0)


def blocks_per_request(groups: Sequence[KVGroup], tokens: int, in_flight: int) -> int:
    """Block ids that one request of `tokens` tokens takes, summed over the groups."""
    return _blocks([group.specs for group in groups], tokens, in_flight)


def longest_fit(groups: Sequence[KVGroup], blocks: int, longest: int, in_flight: int) -> int:
    """Longest request in tokens that `blocks` block ids hold; 0 when not even one token fits."""
    specs = [group.specs for group in groups]
    return largest(lambda tokens: _blocks(specs, tokens, in_flight) <= blocks, longest)


def _blocks(specs: Sequence[Collection[KVSpec]], tokens: int, in_flight: int) -> int:
    return sum(max(spec.blocks_for(tokens, in_flight) for spec in group) for group in specs)
