"""The KV cache of each layer, the layers that share a block table, and the blocks of a request.

Source: `v1/kv_cache_interface.py`, the method `max_memory_usage_bytes` of each class, and
`v1/core/kv_cache_utils.py`: `get_kv_cache_groups`, `unify_kv_cache_spec_page_size`,
`_get_kv_cache_groups_uniform_page_size`, `unify_hybrid_kv_cache_specs`,
`_max_memory_usage_bytes_from_groups`, `get_max_concurrency_for_kv_cache_config`,
`_estimate_max_model_len_from_groups`, `get_kv_cache_configs`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from moorage.memory.need import MemoryPrediction, largest
from moorage.memory.refusal import rejected


class KVKind(StrEnum):
    """Kinds of KV cache, under the names of vLLM's classes."""

    FULL = "FullAttentionSpec"
    MLA = "MLAAttentionSpec"
    SLIDING = "SlidingWindowSpec"
    CHUNKED = "ChunkedLocalAttentionSpec"
    MAMBA = "MambaSpec"
    CROSS = "CrossAttentionSpec"


@dataclass(frozen=True, slots=True)
class KVSpec:
    """The cache of one layer on one rank; kept small, as each prediction makes one for each layer.

    Attributes:
        window: Tokens that a sliding or chunked layer sees; None = all.
        states: Blocks of a recurrent state (Mamba) that one request holds; 0 = one for each block
            of its tokens.
        encoder_tokens: Tokens that a cross-attention layer keeps of the encoder.
    """

    kind: KVKind
    block_size: int
    page_bytes: int
    window: int | None = None
    states: int = 0
    encoder_tokens: int = 0

    def blocks_for(self, tokens: int, in_flight: int) -> int:
        """Most blocks that one request of `tokens` tokens holds.

        A local layer keeps the tokens in flight (scheduled but not yet settled) in addition to its
        window, because blocks are freed only after a step is settled.
        """
        if self.kind is KVKind.MAMBA:
            return self.states or -(-tokens // self.block_size)
        kept, more = tokens, 0
        if self.kind is KVKind.CROSS:
            kept = self.encoder_tokens
        elif self.kind is KVKind.SLIDING:
            # One more block, because a window may start inside a block.
            kept, more = min((self.window or 0) - 1 + in_flight, tokens), 1
        elif self.kind is KVKind.CHUNKED:
            kept = min((self.window or 0) + in_flight, tokens)
        return -(-kept // self.block_size) + more


PADDING_LIMIT = 1.5
"""From this ratio of layer counts on, small groups waste less than padded groups."""

SAME_TOKENS = (KVKind.FULL, KVKind.MLA)
"""Kinds whose layers always need the same number of slots, whatever their page size."""

LOCAL = (KVKind.SLIDING, KVKind.CHUNKED)


@dataclass(frozen=True, slots=True)
class LayerCache:
    """The cache of the decoder layer with index `layer`."""

    layer: int
    spec: KVSpec


KVGroup = tuple[LayerCache, ...]
"""Layers that share one block table, in the model's order."""

Specs = Sequence[Collection[KVSpec]]
"""The distinct caches of each group."""


def group_layers(caches: Sequence[LayerCache], hybrid: bool) -> tuple[KVGroup, ...]:
    """Split the layers of the whole model, in the order of their creation, into groups.

    With `hybrid`, local layers may keep less than full layers.
    """
    if not caches:
        return ()
    specs = _distinct(caches)
    if not hybrid and any(spec.kind in SAME_TOKENS for spec in specs):
        caches = _map_specs(
            caches, lambda spec: replace(spec, kind=KVKind.FULL) if spec.kind in LOCAL else spec
        )
    if _uniform(_distinct(caches)):
        return (tuple(caches),)
    if not hybrid:
        raise rejected(
            "Failed to promote local KV cache specs to one unified type: this model needs the"
            " hybrid KV cache manager, which `--disable-hybrid-kv-cache-manager` and most KV"
            " connectors turn off, also that of `extended_kv_cache`"
        )
    largest = max(spec.page_bytes for spec in specs)
    return _equal_groups(_map_specs(caches, lambda spec: _with_page(spec, largest)))


def _distinct(caches: Sequence[LayerCache]) -> list[KVSpec]:
    return list(dict.fromkeys(cache.spec for cache in caches))


def _map_specs(
    caches: Sequence[LayerCache], change: Callable[[KVSpec], KVSpec]
) -> list[LayerCache]:
    changed = {spec: change(spec) for spec in _distinct(caches)}
    return [LayerCache(layer=cache.layer, spec=changed[cache.spec]) for cache in caches]


def _uniform(specs: Sequence[KVSpec]) -> bool:
    if len({spec.block_size for spec in specs}) > 1:
        return False
    if all(spec.kind in SAME_TOKENS for spec in specs):
        return True
    if len({(spec.kind, spec.window) for spec in specs}) > 1:
        return False
    return specs[0].kind is not KVKind.MAMBA or len({spec.page_bytes for spec in specs}) == 1


def _with_page(spec: KVSpec, page: int) -> KVSpec:
    if spec.page_bytes == page:
        return spec
    if spec.kind is not KVKind.MAMBA and page % spec.page_bytes == 0:
        size = spec.block_size * (page // spec.page_bytes)
        return replace(spec, block_size=size, page_bytes=page)
    if spec.kind is KVKind.MLA:
        raise rejected(
            f"page size {spec.page_bytes} of an MLA layer is not divisible by the maximum "
            f"page size {page} and cannot be padded"
        )
    return replace(spec, page_bytes=page)


def _equal_groups(caches: Sequence[LayerCache]) -> tuple[KVGroup, ...]:
    buckets: dict[KVSpec, list[LayerCache]] = {}
    # Full layers form one bucket, whatever window they had.
    keys = {
        spec: replace(spec, window=None) if spec.kind is KVKind.FULL else spec
        for spec in _distinct(caches)
    }
    for cache in caches:
        buckets.setdefault(keys[cache.spec], []).append(cache)
    counts = [len(bucket) for bucket in buckets.values()]
    size = max(counts) if max(counts) < min(counts) * PADDING_LIMIT else min(counts)
    groups = []
    for bucket in buckets.values():
        number = -(-len(bucket) // size)
        # Every n-th layer, so that each pipeline stage has its share of each group.
        groups += [tuple(bucket[start::number]) for start in range(number)]
    return tuple(groups)


def blocks_per_request(specs: Specs, tokens: int, in_flight: int) -> int:
    """Block ids that one request of `tokens` tokens takes, summed over the groups."""
    return sum(max(spec.blocks_for(tokens, in_flight) for spec in group) for group in specs)


def longest_fit(specs: Specs, blocks: int, longest: int, in_flight: int) -> int:
    """Longest request in tokens that `blocks` block ids hold; 0 = not even one token fits."""
    return largest(lambda tokens: blocks_per_request(specs, tokens, in_flight) <= blocks, longest)


def keeps_states(found: MemoryPrediction) -> bool:
    """Whether requests keep a recurrent state in the cache."""
    return any(group.kind == KVKind.MAMBA for group in found.groups)
