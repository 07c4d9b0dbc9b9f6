"""The memory of a model on an accelerator given by name or size."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from moorage.common.refusal import Refusal
from moorage.common.units import GIB, MIB, parse_bytes
from moorage.common.values import Value
from moorage.memory.demand import MemoryModel
from moorage.memory.gguf import GgufMemory
from moorage.memory.kv import KVKind
from moorage.memory.need import MemoryQuery, Need, largest

COMMON_SIZES = tuple(size * GIB for size in (16, 24, 40, 48, 80, 96, 141, 192))
"""Common sizes of accelerator memory, in bytes."""

REPORTED_MIB = {
    "NVIDIA T4": 15_360,
    "NVIDIA V100 32GB": 32_768,
    "NVIDIA A10": 23_028,
    "NVIDIA A10G": 23_028,
    "NVIDIA L4": 23_034,
    "NVIDIA GeForce RTX 3090": 24_576,
    "NVIDIA GeForce RTX 4090": 24_564,
    "NVIDIA GeForce RTX 5090": 32_607,
    "NVIDIA RTX A6000": 49_140,
    "NVIDIA L40S": 46_068,
    "NVIDIA A100 40GB": 40_960,
    "NVIDIA A100 80GB": 81_920,
    "NVIDIA H100 80GB": 81_559,
    "NVIDIA H100 NVL": 95_830,
    "NVIDIA H200": 143_771,
    "NVIDIA B200": 183_359,
    "AMD Instinct MI300X": 196_592,
}

Sizeable = MemoryModel | GgufMemory
"""A model whose memory follows from its engine's own rules."""


class Device(Value):
    """An accelerator to size for: its name (empty = unknown) and the bytes of its memory."""

    name: str = ""
    total: int

    def query(self, question: MemoryQuery) -> MemoryQuery:
        """The same query for this accelerator."""
        return replace(question, total=self.total, device_name=self.name)


def find_device(text: str) -> Device | None:
    """Read a size such as `24GiB`, or words of a name such as `h100`; the first match counts."""
    try:
        size = parse_bytes(text)
    except ValueError:
        size = 0
    if size >= GIB:  # a smaller number may be part of a name, such as 4090
        return Device(total=size)
    words = text.lower().replace("-", " ").split()
    for name, size in REPORTED_MIB.items():
        if words and all(word in name.lower() for word in words):
            return Device(name=name, total=size * MIB)
    return None


MOST_RANKS = 16
LARGEST_CONCURRENCY = 1 << 16

GROWING = (KVKind.FULL, KVKind.MLA)
"""Kinds of KV cache that grow with every token."""


class Answer(Value):
    """The memory that a model takes of each accelerator.

    Attributes:
        longest: Longest context in tokens that fits at this concurrency.
        most_requests: Requests of the given length that fit at once.
        token_bytes: Bytes of KV cache that each further token takes on one rank.
        flags: The engine arguments for which the numbers hold.
    """

    device: Device
    need: Need
    claim: int
    utilization: float
    fits: bool
    longest: int
    most_requests: int
    token_bytes: int
    flags: tuple[str, ...]


def answer(model: Sizeable, device: Device, query: MemoryQuery, longest: int) -> Answer | Refusal:
    """Size a model for one accelerator; `longest` is the model's longest context in tokens."""
    query, total = device.query(query), device.total
    need = model.need(query)
    if isinstance(need, Refusal):
        return need
    # Without a growing cache, nothing bounds the requests.
    requests = LARGEST_CONCURRENCY if token_bytes(need) else 0
    return Answer(
        device=device,
        need=need,
        claim=need.claim(total),
        utilization=need.utilization(total),
        fits=need.fits(total, total),
        longest=most(model, "tokens", replace(query, tokens=longest), total),
        most_requests=most(model, "concurrency", replace(query, concurrency=requests), total),
        token_bytes=token_bytes(need),
        flags=tuple(_flags(model, need, total) if isinstance(model, MemoryModel) else ()),
    )


def most(model: Sizeable, field: str, query: MemoryQuery, budget: int) -> int:
    """The largest value of a field with which the engine claims no more than `budget` bytes.

    A stated claim bounds the value too. The query holds the largest value to consider. 0 = not even
    1 fits, or the need is unknown.
    """

    def fits(value: int) -> bool:
        changes: dict[str, Any] = {field: value}
        need = model.need(replace(query, **changes))
        return not isinstance(need, Refusal) and need.fits(query.total, budget)

    return largest(fits, getattr(query, field))


def smallest(model: Sizeable, device: Device, query: MemoryQuery, longest: int) -> Answer | Refusal:
    """Size with the fewest tensor-parallel ranks that fit; else with the most that are possible."""
    best = query
    for ranks in range(1, MOST_RANKS + 1):
        spread = replace(query, tensor=ranks)
        need = model.need(device.query(spread))
        if isinstance(need, Need):
            best = spread
            if need.fits(device.total, device.total):
                break
    return answer(model, device, best, longest)


def token_bytes(need: Need) -> int:
    """Bytes of KV cache on one rank for one more token of a long request."""
    if need.cache is None:
        term = need.term("kv_cache")
        return term.bytes // (need.tokens * need.concurrency) if term else 0
    sizes = (group.block_size for group in need.cache.groups if group.kind in GROWING)
    return sum(need.cache.bytes_per_block // size for size in sizes)


def _flags(model: MemoryModel, need: Need, total: int) -> Iterator[str]:
    if need.tensor_parallel_size > 1:
        yield f"--tensor-parallel-size {need.tensor_parallel_size}"
    if need.pipeline_parallel_size > 1:
        yield f"--pipeline-parallel-size {need.pipeline_parallel_size}"
    yield f"--max-model-len {need.tokens}"
    yield f"--max-num-batched-tokens {need.batch.tokens}"
    yield f"--max-num-seqs {need.batch.seqs}"
    if model.options.kv_cache_dtype != "auto":
        yield f"--kv-cache-dtype {model.options.kv_cache_dtype}"
    yield f"--gpu-memory-utilization {need.utilization(total):g}"
