"""What speculative decoding adds: a draft model with weights and a KV cache of its own."""

from __future__ import annotations

from typing import Any

from moorage.models.assets import AssetRole
from moorage.models.memory.batch import Batch
from moorage.models.memory.cache import Pool
from moorage.models.memory.estimates import Term
from moorage.models.memory.options import MemoryOptions
from moorage.models.memory.predict import predict_memory
from moorage.models.memory.refusal import unknown
from moorage.models.memory.specs import KVKind
from moorage.models.memory.weighing import numbers
from moorage.models.source import ResolvedModel
from moorage.models.tensors import TensorHeader
from moorage.units import human_bytes
from moorage.values import Value

WITHOUT_MODEL = ("ngram", "ngram_gpu", "suffix")
"""Methods that look proposals up."""


class Draft(Value):
    """The draft model.

    Attributes:
        config: Content of its config.json.
        headers: Headers of its checkpoint.
    """

    config: dict[str, Any]
    headers: dict[str, TensorHeader]


def draft_of(model: ResolvedModel) -> Draft | None:
    """The draft model that was read beside a model; None where there is none."""
    draft = model.companion(AssetRole.DRAFT)
    return Draft(config=draft.config, headers=dict(draft.headers)) if draft else None


def draft_terms(
    options: MemoryOptions,
    draft: Draft | None,
    pool: Pool,
    batch: Batch,
    tensor: int,
    concurrency: int,
) -> tuple[Term, ...]:
    """The draft model on one rank; none where nothing is drafted.

    Its embedding and head may be shared with the model: then this is a little too much. Its layers
    join the model's own KV groups, which may pad them: then the cache is a little too small.

    Args:
        options: What the spec says.
        draft: The draft model, where it was read.
        pool: The model's own KV cache.
        batch: One scheduler step.
        tensor: Tensor-parallel ranks, the model's.
        concurrency: Requests of that length that the KV cache holds at once.

    Raises:
        Refused: When there is a draft model of which nothing is known.
    """
    asked = options.draft
    if asked and any(group.kind == KVKind.MAMBA for group in pool.found.groups):
        raise unknown("how drafts enlarge a recurrent state is not known")
    if asked is None or asked.method in WITHOUT_MODEL:
        return ()
    if options.stated.draft is not None:
        return (_term(int(options.stated.draft), "memory.draft in the spec"),)
    if draft is None:
        name = asked.model or asked.method
        raise unknown(f"the draft model ({name}) is not read; `memory.draft` states its bytes")
    tokens = pool.found.max_model_len
    # The draft model follows the model through its whole length, whatever it was made for.
    config = {**draft.config, "max_position_embeddings": tokens}
    settings = options.settings(tensor, 1, tokens, batch.tokens)
    found = numbers(predict_memory(config, draft.headers, settings))
    weights, cache = found.weight_bytes_per_rank, found.full_request_bytes * concurrency
    reason = f"{human_bytes(weights)} of weights, {human_bytes(cache)} of cache"
    return (_term(weights + cache, reason),)


def _term(size: int, reason: str) -> Term:
    return Term(name="draft", bytes=size, exact=False, reason=reason)
