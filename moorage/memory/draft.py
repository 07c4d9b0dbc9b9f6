"""The memory of a draft model for speculative decoding: its weights and its KV cache."""

from __future__ import annotations

from typing import Any

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import human_bytes
from moorage.common.values import Value
from moorage.memory.engine_setup import EngineSetup
from moorage.memory.estimates import Term
from moorage.memory.exact import STAND_IN, Pool
from moorage.memory.kv import KVKind
from moorage.memory.options import MemorySettings
from moorage.memory.predict import exact_prediction
from moorage.memory.refusal import unknown
from moorage.models.assets import AssetRole
from moorage.models.source import ResolvedModel, TensorHeader

WITHOUT_MODEL = ("ngram", "ngram_gpu", "suffix")
"""Methods that look proposals up."""


class Draft(Value):
    """The draft model.

    Attributes:
        config: Content of its config.json.
        headers: Headers of its checkpoint; empty where its format has none.
        weight_bytes: Bytes of its weights as stored; 0 = unknown.
    """

    config: dict[str, Any]
    headers: dict[str, TensorHeader]
    weight_bytes: int = 0


class DraftNeed(Value):
    """What a draft model takes on one rank.

    Attributes:
        weights: Bytes of its parameters; of everything where the spec states it.
        cache: Bytes of its KV cache.
        reason: The parts.
    """

    weights: int
    cache: int
    reason: str

    def term(self, size: int) -> Term:
        """The part of it that is listed by itself, in bytes."""
        return Term(name="draft", bytes=size, exact=False, reason=self.reason)


def draft_of(model: ResolvedModel) -> Draft | None:
    """The draft model among the companions of a model; None without one."""
    draft = model.companion(AssetRole.DRAFT)
    if draft is None:
        return None
    return Draft(config=draft.config, headers=dict(draft.headers), weight_bytes=draft.weights.bytes)


def draft_need(setup: EngineSetup, draft: Draft | None, pool: Pool) -> DraftNeed | None:
    """What drafting takes on one rank; None where no model drafts.

    Its embedding and head may be shared with the model: then this is a little too much. Its layers
    join the model's own KV groups, which may pad them: then the cache is a little too small.

    Args:
        setup: The engine.
        draft: The draft model, where it was read.
        pool: The model's own KV cache.

    Raises:
        Refusal: When there is a draft model of which nothing is known.
    """
    wanted, stated = setup.options.draft, setup.options.stated.draft
    if wanted and any(group.kind == KVKind.MAMBA for group in pool.prediction.groups):
        raise unknown("how drafts enlarge a recurrent state is not known")
    if wanted is None or wanted.method in WITHOUT_MODEL:
        return None
    if stated is not None:
        return DraftNeed(weights=int(stated), cache=0, reason="memory.draft in the spec")
    if draft is None:
        name = wanted.model or wanted.method
        raise unknown(f"the draft model ({name}) is not read; `memory.draft` states its bytes")
    # The draft model follows the model through its whole length, whatever it was made for.
    config = {**draft.config, "max_position_embeddings": setup.query.tokens}
    settings = setup.settings(pipeline=1)
    weights, why = _weights(config, draft, settings)
    request = exact_prediction(config, STAND_IN, settings).full_request_bytes
    cache = request * setup.query.concurrency
    reason = f"{human_bytes(weights)} of weights{why}, {human_bytes(cache)} of cache"
    return DraftNeed(weights=weights, cache=cache, reason=reason)


def _weights(config: dict[str, Any], draft: Draft, settings: MemorySettings) -> tuple[int, str]:
    """Bytes of the parameters on one rank; all of them where their split is not known."""
    try:
        return exact_prediction(config, draft.headers, settings).weight_bytes_per_rank, ""
    except Refusal as refusal:
        if refusal.reason is not Reason.UNKNOWN or not draft.weight_bytes:
            raise
        return draft.weight_bytes, " as stored, whole on each rank"
