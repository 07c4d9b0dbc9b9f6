"""Layers that share a block table, and pages of one size.

Source: `v1/core/kv_cache_utils.py`: `get_kv_cache_groups`, `unify_kv_cache_spec_page_size`,
`_get_kv_cache_groups_uniform_page_size`, `unify_hybrid_kv_cache_specs`.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.models.memory.numbers import divide_up
from moorage.models.memory.refusal import rejected
from moorage.models.memory.specs import KVKind, KVSpec
from moorage.values import Value

PADDING_LIMIT = 1.5
"""Above this ratio of layer counts, small groups waste less than padded ones."""

SAME_TOKENS = (KVKind.FULL, KVKind.MLA)
"""Kinds whose layers always need the same number of slots, whatever their page."""

LOCAL = (KVKind.SLIDING, KVKind.CHUNKED)


class LayerCache(Value):
    """The cache of one layer.

    Attributes:
        layer: Index of the decoder layer.
        spec: Its cache.
    """

    layer: int
    spec: KVSpec


class KVGroup(Value):
    """Layers that share one block table.

    Attributes:
        members: Its layers, in the model's order.
    """

    members: tuple[LayerCache, ...]

    def on_stage(self, layers: range) -> KVGroup:
        """The part of the group that one pipeline stage runs; it may be empty."""
        return KVGroup(members=tuple(m for m in self.members if m.layer in layers))

    @property
    def page_bytes(self) -> int:
        """Bytes of one block over all layers of the group."""
        return sum(member.spec.page_bytes for member in self.members)


def group_layers(caches: Sequence[LayerCache], hybrid: bool) -> tuple[KVGroup, ...]:
    """Split the layers of the whole model into groups.

    Args:
        caches: The caches in the order in which the model creates them.
        hybrid: Whether local layers may keep less than full layers.
    """
    if not hybrid:
        caches = _promoted(caches)
    if not caches:
        return ()
    if _uniform([cache.spec for cache in caches]):
        return (KVGroup(members=tuple(caches)),)
    return _equal_groups(_unified(caches))


def _uniform(specs: Sequence[KVSpec]) -> bool:
    first = specs[0]
    if all(spec == first for spec in specs):
        return True
    if len({spec.block_size for spec in specs}) > 1:
        return False
    if all(spec.kind in SAME_TOKENS for spec in specs):
        return True
    same = all((spec.kind, spec.window) == (first.kind, first.window) for spec in specs)
    return same and (first.kind is not KVKind.MAMBA or len({s.page_bytes for s in specs}) == 1)


def _promoted(caches: Sequence[LayerCache]) -> Sequence[LayerCache]:
    specs = [cache.spec for cache in caches]
    if not specs or _uniform(specs):
        return caches
    if any(spec.kind in SAME_TOKENS for spec in specs):
        caches = [cache.model_copy(update={"spec": _whole(cache.spec)}) for cache in caches]
    if not _uniform([cache.spec for cache in caches]):
        raise rejected("Failed to promote local KV cache specs to one unified type.")
    return caches


def _whole(spec: KVSpec) -> KVSpec:
    return spec.model_copy(update={"kind": KVKind.FULL}) if spec.kind in LOCAL else spec


def _unified(caches: Sequence[LayerCache]) -> list[LayerCache]:
    largest = max(cache.spec.page_bytes for cache in caches)
    return [cache.model_copy(update={"spec": _with_page(cache.spec, largest)}) for cache in caches]


def _with_page(spec: KVSpec, page: int) -> KVSpec:
    if spec.page_bytes == page:
        return spec
    if spec.kind is not KVKind.MAMBA and page % spec.page_bytes == 0:
        size = spec.block_size * (page // spec.page_bytes)
        return spec.model_copy(update={"block_size": size, "page_bytes": page})
    if spec.kind is KVKind.MLA:
        raise rejected(
            f"page size {spec.page_bytes} of an MLA layer is not divisible by the maximum "
            f"page size {page} and cannot be padded"
        )
    return spec.model_copy(update={"page_bytes": page})


def _equal_groups(caches: Sequence[LayerCache]) -> tuple[KVGroup, ...]:
    buckets: dict[KVSpec, list[LayerCache]] = {}
    for cache in caches:
        key = _merge_key(cache.spec)
        buckets.setdefault(key, []).append(cache)
    counts = [len(bucket) for bucket in buckets.values()]
    size = max(counts) if max(counts) < min(counts) * PADDING_LIMIT else min(counts)
    groups = []
    for bucket in buckets.values():
        number = divide_up(len(bucket), size)
        # Every n-th layer, so that each pipeline stage has its share of each group.
        groups += [KVGroup(members=tuple(bucket[start::number])) for start in range(number)]
    return tuple(groups)


def _merge_key(spec: KVSpec) -> KVSpec:
    return spec.model_copy(update={"window": None}) if spec.kind is KVKind.FULL else spec
