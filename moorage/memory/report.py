"""What `moorage memory` tells: one accelerator in detail, or common sizes side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moorage.common.values import Value
from moorage.memory.demand import MemoryModel
from moorage.memory.devices import Device
from moorage.memory.need import Need
from moorage.memory.refusal import MemoryRefusal
from moorage.memory.specs import KVKind

MOST_RANKS = 16
LARGEST_CONCURRENCY = 1 << 16

GROWING = (KVKind.FULL, KVKind.MLA)
"""Kinds of KV cache that grow with every token."""


class Question(Value):
    """What is asked.

    Attributes:
        tensor: Tensor-parallel ranks.
        pipeline: Pipeline stages.
        tokens: Longest request.
        concurrency: Requests of that length at once.
        at_most: Longest context of the model.
    """

    tensor: int
    pipeline: int
    tokens: int
    concurrency: int
    at_most: int


class Answer(Value):
    """One accelerator.

    Attributes:
        device: The accelerator.
        need: What one rank needs of it.
        claim: Bytes that are taken of each accelerator.
        utilization: `--gpu-memory-utilization`.
        fits: Whether that is no more than there is.
        longest: Longest context in tokens that fits at this concurrency.
        most_requests: Requests of the asked length that fit at once.
        token_bytes: Bytes of KV cache that each further token takes on one rank.
        flags: The engine's arguments under which the numbers hold.
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


def answer(model: MemoryModel, device: Device, asked: Question) -> Answer | MemoryRefusal:
    """Count for one accelerator."""
    need = _need(model, device, asked, asked.tokens, asked.concurrency)
    if isinstance(need, MemoryRefusal):
        return need
    total = device.total
    return Answer(
        device=device,
        need=need,
        claim=need.claim(total),
        utilization=need.utilization(total),
        fits=need.fits(total, total),
        longest=model.longest(
            total=total,
            device_name=device.name,
            tensor=asked.tensor,
            pipeline=asked.pipeline,
            budget=total,
            concurrency=asked.concurrency,
            at_most=asked.at_most,
        ),
        most_requests=_most_requests(model, device, asked) if need.has_cache else 0,
        token_bytes=token_bytes(need),
        flags=tuple(_flags(model, need, total)),
    )


def smallest(model: MemoryModel, device: Device, asked: Question) -> Answer | MemoryRefusal:
    """Count with the fewest tensor-parallel ranks with which it fits; else with the most."""
    best = asked
    for ranks in range(1, MOST_RANKS + 1):
        spread = asked.model_copy(update={"tensor": ranks})
        need = _need(model, device, spread, asked.tokens, asked.concurrency)
        if isinstance(need, Need):
            best = spread
            if need.fits(device.total, device.total):
                break
    return answer(model, device, best)


def sizes(
    model: MemoryModel, devices: Sequence[Device], asked: Question
) -> tuple[tuple[Device, Answer | MemoryRefusal], ...]:
    """The smallest answer for each of several accelerators."""
    return tuple((device, smallest(model, device, asked)) for device in devices)


def token_bytes(need: Need) -> int:
    """Bytes of KV cache on one rank that one more token of a long request takes."""
    cache = need.cache
    groups = cache.groups if cache else ()
    sizes = [group.block_size for group in groups if group.kind in GROWING]
    return sum(cache.bytes_per_block // size for size in sizes) if cache else 0


def _need(
    model: MemoryModel, device: Device, asked: Question, tokens: int, concurrency: int
) -> Need | MemoryRefusal:
    return model.need(
        total=device.total,
        device_name=device.name,
        tensor=asked.tensor,
        pipeline=asked.pipeline,
        tokens=tokens,
        concurrency=concurrency,
    )


def _most_requests(model: MemoryModel, device: Device, asked: Question) -> int:
    low, high = 0, LARGEST_CONCURRENCY
    while low < high:
        middle = (low + high + 1) // 2
        need = _need(model, device, asked, asked.tokens, middle)
        fits = not isinstance(need, MemoryRefusal) and need.fits(device.total, device.total)
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


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
