"""The memory that speculative decoding takes on one rank."""

from dataclasses import dataclass

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import human_bytes
from moorage.memory.engine_setup import EngineSetup
from moorage.memory.exact import STAND_IN, Pool, RankWeights
from moorage.memory.facts import Facts
from moorage.memory.kv import KVKind, keeps_states
from moorage.memory.need import Term
from moorage.memory.predict import exact_prediction
from moorage.memory.refusal import unknown
from moorage.memory.weights import Tensors
from moorage.models.source import ResolvedModel

WITHOUT_DRAFT_MODEL = ("ngram", "ngram_gpu", "suffix")
"""Methods of speculative decoding that look up proposals instead of running a model."""

PREDICTOR_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers")
"""Keys of the number of layers that a model drafts with; one if the configuration has neither."""


@dataclass(frozen=True)
class DraftNeed:
    """Bytes that drafting takes on one rank; if stated in the spec, all count as `weights`."""

    weights: int
    cache: int
    reason: str

    def term(self, size: int) -> Term:
        """A term for `size` bytes of it."""
        return Term.estimate("draft", size, self.reason)


def draft_need(
    setup: EngineSetup, draft: ResolvedModel | None, pool: Pool, weighed: RankWeights
) -> DraftNeed | None:
    """The memory that drafting takes on one rank; None if nothing is computed for it.

    Raises:
        Refusal: When the draft model is unknown, or the model has a recurrent state.
    """
    wanted, stated = setup.options.draft, setup.options.stated.draft
    if wanted is None:
        return None
    if keeps_states(pool.prediction) and not wanted.by_own_layers:
        raise unknown("how drafts enlarge a recurrent state is not known")
    if wanted.method in WITHOUT_DRAFT_MODEL:
        return None
    if stated is not None:
        return DraftNeed(weights=int(stated), cache=0, reason="memory.draft in the spec")
    if wanted.by_own_layers:
        return _own_layers(setup, pool, weighed.predictor)
    if draft is None:
        name = wanted.model or wanted.method
        raise unknown(f"the draft model ({name}) is not read; `memory.draft` states its bytes")
    return _separate_model(setup, draft)


def _own_layers(setup: EngineSetup, pool: Pool, weights: int) -> DraftNeed:
    """The need of the layers that a model drafts with (MTP); they join the groups of its cache.

    A request keeps each recurrent state once more for each drafted token. That the convolution
    within a state grows too is not counted.
    """
    found, wanted, requests = pool.prediction, setup.options.draft, setup.query.concurrency
    layers = setup.facts.positive(PREDICTOR_KEYS) or 1
    # SGLang's states have a pool of their own, which counts drafts.
    apart = KVKind.MAMBA if setup.options.sglang else None
    groups = [group for group in found.groups if group.kind != apart]
    states = sum(group.kind == KVKind.MAMBA for group in groups)
    more = states * wanted.tokens if wanted else 0
    page = layers * max((group.page_bytes for group in groups), default=0)
    blocks = max(pool.blocks, requests * (found.blocks_per_full_request + more) + 1)
    cache = blocks * page + requests * more * found.bytes_per_block
    if setup.options.kv_bytes is not None:
        cache = 0  # a cache of a given size holds them too
    return DraftNeed(weights=weights, cache=cache, reason=_parts(weights, cache))


def _separate_model(setup: EngineSetup, draft: ResolvedModel) -> DraftNeed:
    """The need of a draft model.

    If it shares its embedding and head with the model, the weights are a little too large. If the
    model's KV groups pad its layers, the cache is a little too small.
    """
    # It drafts over the model's whole context, whatever its own limit.
    config = {**draft.config, "max_position_embeddings": setup.query.tokens}
    settings, stored = setup.settings(pipeline=1), ""
    if not Facts(config).experts:  # vLLM then spreads only the model's (`config/speculative.py`)
        settings = settings.model_copy(update={"enable_expert_parallel": False})
    try:
        found = exact_prediction(config, Tensors(draft.headers), settings)
        weights = found.weight_bytes_per_rank
    except Refusal as refusal:
        if refusal.reason is not Reason.UNKNOWN or not draft.weights.bytes:
            raise
        weights, stored = draft.weights.bytes, " as stored, whole on each rank"
    request = exact_prediction(config, Tensors(STAND_IN), settings).full_request_bytes
    cache = request * setup.query.concurrency
    return DraftNeed(weights=weights, cache=cache, reason=_parts(weights, cache, stored))


def _parts(weights: int, cache: int, stored: str = "") -> str:
    return f"{human_bytes(weights)} of weights{stored}, {human_bytes(cache)} of cache"
