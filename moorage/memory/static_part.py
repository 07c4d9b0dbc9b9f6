"""The parts of a need as SGLang divides them: before loading, static, and after the cache.

`--mem-fraction-static` is a share of what is free before loading. Weights and cache take it; the
rest is for what is allocated afterwards.
"""

from moorage.memory.need import Need

FRACTION = "--mem-fraction-static"

LATER = ("activation", "cuda_graphs", "buffers", "sampling", "request_table")
"""Terms that SGLang takes after it has sized its cache (0.5.23)."""


def before_loading(need: Need) -> int:
    """Bytes that are taken before SGLang measures what is free."""
    return sum(term.bytes for term in need.terms if not term.inside and term.name not in LATER)


def after_cache(need: Need) -> int:
    """Bytes that SGLang takes of the memory outside the fraction."""
    return sum(term.bytes for term in need.terms if term.name in LATER)


def least_static(need: Need) -> int:
    """Bytes that weights, adapters, draft model and cache take at least."""
    spare = (*LATER, "redundancy")  # SGLang does not need the last to start
    return sum(term.bytes for term in need.terms if term.inside and term.name not in spare)


def static_bytes(need: Need, total: int, fraction: float) -> int:
    """Bytes that a fraction gives weights and cache where nobody else uses the accelerator."""
    return int((total - before_loading(need)) * fraction)


def claim_with(need: Need, total: int, fraction: float) -> int:
    """The claim for a fraction that the user states."""
    rest = before_loading(need) + after_cache(need)
    return min(total, static_bytes(need, total, fraction) + rest)
