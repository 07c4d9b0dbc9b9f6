"""What vLLM needs of a host's RAM when it runs on CPU, with one rank on the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.common.units import GIB
from moorage.memory.batch import cuts_prompts, without_accelerator
from moorage.memory.cache import pool_for
from moorage.memory.draft import Draft, DraftNeed, draft_need
from moorage.memory.estimates import Shape, Term, activation
from moorage.memory.exact import exact_terms
from moorage.memory.need import CpuNeed
from moorage.memory.options import MemoryOptions
from moorage.memory.weighing import Weighed

BLOCK = 128
"""Tokens of a KV block on CPU (`platforms/cpu.py`)."""

PROCESSES = 3 * GIB
"""RAM of vLLM's own processes on CPU; measured 1.6 to 2.5 GiB with page cache.

The kernel charges the files that a first start reads to the container, and vLLM counts them as
used: on a machine that has just got the image, 2 GiB left no room for the key/value cache.
"""


def on_cpu(
    config: Mapping[str, Any],
    options: MemoryOptions,
    weighed: Weighed,
    tokens: int,
    concurrency: int,
    processes: int,
    draft: Draft | None = None,
    ranks: int = 1,
) -> CpuNeed:
    """Count the RAM. There is no utilization: the KV cache is given in whole GiB.

    Args:
        config: Configuration as the engine sees it.
        options: What the spec says.
        weighed: The weights.
        tokens: Longest request.
        concurrency: Requests of that length that the KV cache holds at once.
        processes: Bytes that the engine's processes take themselves.
        draft: The draft model, where one is used and was read.
        ranks: Tensor-parallel ranks, one on each host.

    Raises:
        Refused: When the rules do not cover the model, or vLLM refuses the settings.
    """
    batch = without_accelerator(options, ranks, tokens, cuts_prompts(config, options))
    pool = pool_for(
        config,
        options,
        tensor=ranks,
        pipeline=1,
        tokens=tokens,
        batched=batch.tokens,
        concurrency=concurrency,
        block=BLOCK,
    )
    drafted = draft_need(options, draft, pool, batch, ranks, concurrency, BLOCK)
    cache = pool.stages[0] + (drafted.cache if drafted else 0)
    whole = -(-cache // GIB) * GIB
    peak, why = activation(Shape.of(config, options, batch, ranks, any(pool.stages)))
    weights, _, *adapters = exact_terms(weighed, pool, options)
    own = "the engine's own processes"
    held = pool.reason(0) + ", the draft model's too" * bool(drafted and drafted.cache)
    return CpuNeed(
        tokens=tokens,
        concurrency=concurrency,
        batch=batch,
        cache_bytes=whole,
        terms=(
            weights,
            Term(name="kv_cache", bytes=whole, exact=True, reason=f"{held}, whole GiB"),
            *adapters,
            *_draft_weights(drafted),
            Term(name="activation", bytes=peak, exact=False, reason=why),
            Term(name="processes", bytes=processes, exact=False, reason=own),
        ),
    )


def _draft_weights(need: DraftNeed | None) -> tuple[Term, ...]:
    if need is None:
        return ()
    return (Term(name="draft", bytes=need.weights, exact=False, reason=need.reason),)
