"""Predicted against measured memory, as rows that a person reads."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.common.units import human_bytes
from moorage.memory.calibration import LOADED, STAYING, Measurement, charged_graphs

COLUMNS = ("workload", "memory", "predicted", "measured", "difference")
UNKNOWN = "-"


def comparison_rows(measurements: Iterable[Measurement]) -> tuple[tuple[str, ...], ...]:
    """A row for each fact that an engine told; sizes are of one rank."""
    return tuple(
        (one.workload, *row) for one in measurements for row in (*_sizes(one), *_counts(one))
    )


def _sizes(one: Measurement) -> list[tuple[str, ...]]:
    measured = one.measured
    facts = (
        ("weights", LOADED, measured.weights_bytes),
        ("weights and what stays beside them", STAYING, measured.consumed_bytes),
        ("activation", ("activation",), measured.activation_bytes),
        ("CUDA graphs", ("cuda_graphs",), charged_graphs(measured)),
        ("KV cache", ("kv_cache",), measured.kv_cache_bytes),
        ("worker process", (), measured.process_bytes),
    )
    return [
        (title, *_compared(one, terms, size)) for title, terms, size in facts if size is not None
    ]


def _compared(one: Measurement, terms: tuple[str, ...], size: int) -> tuple[str, str, str]:
    if not terms or terms[0] not in one.predicted:
        return UNKNOWN, human_bytes(size), UNKNOWN
    predicted = sum(one.predicted.get(term, 0) for term in terms)
    off = size - predicted
    return human_bytes(predicted), human_bytes(size), f"{'+' * (off > 0)}{human_bytes(off)}"


def _counts(one: Measurement) -> list[tuple[str, ...]]:
    measured = one.measured
    rows: list[tuple[str, ...]] = []
    if measured.kv_tokens is not None:
        rows.append(("tokens in the cache", UNKNOWN, f"{measured.kv_tokens:,}", UNKNOWN))
    if measured.concurrency is not None:
        title = f"requests of {measured.request_tokens or 0:,} tokens at once"
        rows.append((title, UNKNOWN, f"{measured.concurrency:.2f}", UNKNOWN))
    return rows
