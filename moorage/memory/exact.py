"""The parts of the need that follow from vLLM's own accounting."""

from __future__ import annotations

from moorage.memory.cache import Pool
from moorage.memory.estimates import Term
from moorage.memory.options import MemoryOptions
from moorage.memory.weighing import Weighed


def exact_terms(weighed: Weighed, pool: Pool, options: MemoryOptions) -> tuple[Term, ...]:
    """Weights, KV cache and adapters of the stage that needs most of all three together."""
    together = list(map(sum, zip(weighed.stages, pool.stages, weighed.adapters, strict=True)))
    worst = together.index(max(together))
    at = f", stage {worst + 1} of {len(together)}" if len(together) > 1 else ""
    terms = [
        Term(
            name="weights",
            bytes=weighed.stages[worst],
            exact=weighed.exact,
            reason=f"{weighed.reason}{at}",
        ),
        Term(name="kv_cache", bytes=pool.stages[worst], exact=True, reason=pool.reason(worst)),
    ]
    if lora := options.lora:
        reason = f"{lora.max_loras} adapters of rank {lora.max_rank} for every target"
        terms.append(
            Term(
                name="lora",
                bytes=weighed.adapters[worst],
                exact=weighed.adapters_exact,
                reason=reason,
            )
        )
    return tuple(terms)
