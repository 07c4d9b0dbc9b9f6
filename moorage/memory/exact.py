"""The exact terms of one rank: weights, KV cache and adapter buffers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from moorage.common.refusal import Refusal
from moorage.common.units import human_bytes
from moorage.common.values import Value
from moorage.memory.dtypes import engine_dtype, pools
from moorage.memory.engine_setup import EngineSetup
from moorage.memory.facts import Facts
from moorage.memory.kv import KVKind, keeps_states
from moorage.memory.layer_caches import DESCRIBED_TYPES
from moorage.memory.layers import Mixer, layer_mixers, stage_ranges
from moorage.memory.lora import lora_bytes
from moorage.memory.mxfp4 import doubt_of_padding, kernel_for
from moorage.memory.need import Batch, MemoryPrediction, MemoryQuery, Term
from moorage.memory.options import MemoryOptions, MemorySettings
from moorage.memory.predict import exact_prediction
from moorage.memory.refusal import caught, rejected, unknown
from moorage.memory.sglang_cache import bytes_for_states
from moorage.memory.sharding import TensorName, parse_name
from moorage.memory.states import states_kept
from moorage.memory.weights import Tensors, attention_copies, predictor_weights, without_rule
from moorage.models.config import Config
from moorage.models.source import TensorHeader, WeightSummary


class RankWeights(Value):
    """Bytes of the parameters on one rank.

    Attributes:
        stages: Bytes on each pipeline stage.
        adapters: Bytes of the buffers for LoRA adapters on each stage.
        predictor: Bytes of the layers that draft, if the model drafts with layers of its own.
        exact: Whether `stages` follow from tensor headers and known rules.
        adapters_exact: Whether `adapters` do; buffers of experts depend on how vLLM merges experts.
    """

    stages: tuple[int, ...]
    adapters: tuple[int, ...]
    exact: bool
    adapters_exact: bool
    reason: str
    predictor: int = 0


class Scale:
    """Weighs a model and caches the results: weighing a large model takes a second."""

    def __init__(
        self,
        config: Config,
        headers: Mapping[str, TensorHeader],
        files: WeightSummary | None,
        options: MemoryOptions,
    ) -> None:
        if options.language_model_only:
            # vLLM then creates no modules for pictures and sound.
            headers = {k: header for k, header in headers.items() if not parse_name(k).tower}
        self._config, self._files, self._options = config, files, options
        self._tensors, fewer = Tensors(headers), _without_absent(headers, options.absent)
        self._wanted = self._tensors if fewer is headers else Tensors(fewer)
        self._cache: dict[tuple[object, ...], RankWeights | Refusal] = {}

    @cached_property
    def _facts(self) -> Facts:
        return Facts(self._config)

    def weigh(self, query: MemoryQuery) -> RankWeights:
        """Weigh the ranks.

        Raises:
            Refusal: When the model cannot be split like this, or its tensors are unknown.
        """
        kernel = kernel_for(self._facts, query)
        key = (query.tensor, query.pipeline, query.data, query.versions, kernel)
        if key not in self._cache:
            self._cache[key] = caught(lambda: self._weigh(self._settings(query)))
        found = self._cache[key]
        if isinstance(found, Refusal):
            raise found.with_traceback(None)
        return found

    def _settings(self, query: MemoryQuery) -> MemorySettings:
        # Weights do not depend on the context; a context of 1 is always allowed.
        query, step = replace(query, tokens=1), Batch(tokens=1, seqs=1)
        return EngineSetup(self._config, self._options, step, query).settings()

    def _weigh(self, settings: MemorySettings) -> RankWeights:
        facts, lora = self._facts, self._options.lora
        tensors = self._wanted if settings.since(WITHOUT_ABSENT_SINCE) else self._tensors
        headers, ranges = tensors.headers, stage_ranges(facts, settings)
        tensor, doubt = settings.tensor_parallel_size, "no headers"
        if headers:
            stages, reason = self._created(facts, tensors, settings, ranges)
            doubt = doubt_of_padding(facts, settings)
            if module := without_rule(facts, tensors, settings):
                doubt = f"{module} counts whole, because how it is split is not known"
            if tensors is not self._wanted:
                doubt = "an encoder that this version may not make is counted"
            reason = "; ".join(filter(None, (reason, doubt)))
        else:
            stages, reason = self._stages_of_files(facts, tensor, ranges)
        return RankWeights(
            stages=stages,
            adapters=lora_bytes(facts, headers, lora, tensor, ranges),
            exact=not doubt,
            adapters_exact=not facts.experts,
            reason=reason,
            predictor=self._predictor(facts, settings),
        )

    def _created(
        self, facts: Facts, tensors: Tensors, settings: MemorySettings, ranges: Sequence[range]
    ) -> tuple[tuple[int, ...], str]:
        """Bytes on each stage of the parameters, and of the copies that vLLM makes of some."""
        tensor, data = settings.tensor_parallel_size, settings.data_parallel_size
        found = exact_prediction(self._config, tensors, settings)
        copies = attention_copies(facts, tensors, settings, found.dtype, ranges)
        created = (stage.weight_bytes for stage in found.stages)
        reason = f"{len(tensors.headers)} tensors"
        reason += f" over {tensor} ranks" * (tensor > 1)
        reason += f", experts over {tensor * data}" if data > 1 and facts.experts else ""
        reason += ", MLA's kv_b_proj in 16 bits besides" * any(copies)
        return tuple(map(sum, zip(created, copies, strict=True))), reason

    def _predictor(self, facts: Facts, settings: MemorySettings) -> int:
        draft = self._options.draft
        if not (draft and draft.by_own_layers and self._tensors.headers):
            return 0
        dtype = engine_dtype(facts, pools(facts, settings.runner))
        return predictor_weights(facts, self._tensors, settings, dtype)

    def _stages_of_files(
        self, facts: Facts, tensor: int, ranges: Sequence[range]
    ) -> tuple[tuple[int, ...], str]:
        files = self._files
        if files is None or not files.bytes:
            raise unknown("there are no tensor headers")
        most = max(map(len, ranges))
        # vLLM casts float32 to two bytes while loading.
        size = files.bytes // (2 if facts.get("torch_dtype") == "float32" else 1)
        each = -(-size * most // (tensor * facts.layers))
        reason = f"{human_bytes(files.bytes)} of {files.family} files, whose tensors are not known"
        return (each,) * len(ranges), reason


WITHOUT_ABSENT_SINCE = "0.26.0"
"""First version that surely creates no encoder whose inputs all have the limit 0.

Source: `model_executor/models/interfaces.py:_mark_tower_model`.
"""


def _without_absent(
    headers: Mapping[str, TensorHeader], absent: Collection[str]
) -> Mapping[str, TensorHeader]:
    """The tensors without encoders of inputs that no request may have.

    What joins an encoder to the language model goes with the last one.
    """
    sees, hears = not {"image", "video"} <= set(absent), "audio" not in absent
    if sees and hears:
        return headers
    names = {key: parse_name(key) for key in headers}
    joined = sees or (hears and any(name.hears for name in names.values()))

    def is_kept(name: TensorName) -> bool:
        if name.hears:
            return hears
        return not name.tower or (sees if name.sees else joined)

    return {key: header for key, header in headers.items() if is_kept(names[key])}


STAND_IN = {"model.norm.weight": TensorHeader(dtype="BF16", shape=(1,))}
"""Headers for the exact rules if only the cache is needed: weighing a model takes a second."""


class Pool(Value):
    """The KV cache of an engine.

    Attributes:
        stages: Bytes of the pool on one rank of each pipeline stage.
        formula: The formula of the number of blocks; empty = the size was given.
        doubt: Why it is an estimate; empty = it is none.
    """

    prediction: MemoryPrediction
    blocks: int
    stages: tuple[int, ...]
    formula: str
    doubt: str = ""

    def term(self, size: int, why: str) -> Term:
        """The term of the cache with `size` bytes, whose formula is `why`."""
        reason = "; ".join(filter(None, (why, self.doubt)))
        return Term(name="kv_cache", bytes=size, exact=not self.doubt, reason=reason)

    def reason(self, stage: int) -> str:
        """The formula of one stage's pool, with numbers."""
        each = self.prediction.stages[stage].bytes_per_block
        if each and not self.formula:
            return "--kv-cache-memory-bytes"
        blocks = f"{self.formula} blocks x {each} B" if each else ""
        states = self.stages[stage] - self.blocks * each if self.formula else 0
        parts = (blocks, f"{states} B for recurrent states" if states else "")
        return " + ".join(filter(None, parts)) or "it keeps none"


def pool_for(setup: EngineSetup) -> Pool:
    """The smallest KV cache that holds the requested concurrency.

    vLLM holds one block back and does not start if a full request needs more than the other blocks
    (`v1/core/kv_cache_utils.py`).

    Raises:
        Refusal: When the rules do not cover the model, or vLLM refuses the settings, such as a
            given cache size that is too small.
    """
    found = exact_prediction(setup.config, Tensors(STAND_IN), setup.settings())
    size, request = setup.options.kv_bytes, found.blocks_per_full_request
    if size is not None and found.bytes_per_block:
        blocks, formula, doubt = size // found.bytes_per_block, "", ""
        # Without a rule for the options, the size of a block is not known.
        if request >= blocks and not setup.options.uncovered:
            raise rejected(
                f"the KV cache of {size} B has {blocks} blocks, one of them held back; a request"
                f" of {found.max_model_len} tokens takes {request}"
            )
        stages = tuple(size if stage.bytes_per_block else 0 for stage in found.stages)
    else:
        doubt = _doubt(setup, found)
        concurrency, each = setup.query.concurrency, _blocks_of_another(setup, found)
        formula, blocks = f"({concurrency} x {request} + 1)", request + (concurrency - 1) * each + 1
        if each < request and concurrency > 1:
            formula = f"({request} + {concurrency - 1} x {each} + 1)"
        stages = tuple(blocks * stage.bytes_per_block for stage in found.stages)
        stages = tuple(size + _bytes_for_states(setup, found, size) for size in stages)
    return Pool(prediction=found, blocks=blocks, stages=stages, formula=formula, doubt=doubt)


def _doubt(setup: EngineSetup, found: MemoryPrediction) -> str:
    """Why the cache is an estimate; empty = it is none."""
    kind = setup.facts.model_type
    if kind not in DESCRIBED_TYPES and found.groups:
        return f"no rule describes model type {kind:.60}, so plain layers are assumed"
    if not keeps_states(found):
        return ""
    settings = setup.settings()
    if settings.enable_prefix_caching is None and not (settings.is_read or settings.sglang):
        return "whether this vLLM caches prefixes by itself is not known"
    return states_kept(setup.facts, settings, found.enable_prefix_caching).doubt


def _blocks_of_another(setup: EngineSetup, found: MemoryPrediction) -> int:
    """Blocks of each full request after the first.

    vLLM's check counts a whole step of encoder tokens for the first one; its scheduler gives each
    request those that its encoder has (`v1/core/sched/scheduler.py`).
    """
    facts, blocks = setup.facts, found.blocks_per_full_request
    real = facts.number("max_source_positions") if facts.get("is_encoder_decoder") else 0
    for group in found.groups:
        if real and group.kind == KVKind.CROSS:
            blocks -= max(0, group.blocks_per_full_request - -(-real // group.block_size))
    return blocks


def _bytes_for_states(setup: EngineSetup, found: MemoryPrediction, cache: int) -> int:
    """Bytes of one rank's recurrent states that are not part of a block (SGLang)."""
    pages = [group.page_bytes for group in found.groups if group.kind == KVKind.MAMBA]
    if not (setup.options.sglang and pages):
        return 0
    # Each stage takes as much as the one with most of these layers.
    mixers = layer_mixers(setup.facts)
    stages = stage_ranges(setup.facts, setup.settings())
    most = max(sum(mixers[at].count(Mixer.STATE) for at in stage) for stage in stages)
    drafted = setup.options.draft.tokens + 1 if setup.options.draft else 0
    settings, requests = setup.settings(), setup.query.concurrency
    return bytes_for_states(settings, most * pages[0], setup.batch, requests, drafted, cache)


def with_states(setup: EngineSetup, pool: Pool) -> tuple[EngineSetup, Pool]:
    """As many blocks as requests of a step: vLLM captures no graph with fewer recurrent states.

    A number of requests that the user states enlarges the pool; else the pool bounds the number.
    Source: `config/compilation.py:resolve_cudagraph_mode_and_sizes`.

    Raises:
        Refusal: When the user states both the requests and the size of the pool, and it is small.
    """
    options, blocks, batch = setup.options, pool.blocks, setup.batch
    is_bound = keeps_states(pool.prediction) and setup.query.versions and not options.enforce_eager
    if not is_bound or batch.seqs <= blocks:
        return setup, pool
    if options.max_seqs is None:
        return replace(setup, batch=batch.model_copy(update={"seqs": blocks})), pool
    if options.kv_bytes is not None:
        raise rejected(
            f"max_num_seqs ({batch.seqs}) exceeds available Mamba cache blocks ({blocks})"
        )
    stages = tuple(batch.seqs * stage.bytes_per_block for stage in pool.prediction.stages)
    changes = {"blocks": batch.seqs, "stages": stages, "formula": f"{batch.seqs} requests, as many"}
    return setup, pool.model_copy(update=changes)


def exact_terms(weighed: RankWeights, pool: Pool, options: MemoryOptions) -> tuple[Term, ...]:
    """Weights, KV cache and adapters of the stage with the largest sum of the three."""
    sums = list(map(sum, zip(weighed.stages, pool.stages, weighed.adapters, strict=True)))
    worst = sums.index(max(sums))
    at = f", stage {worst + 1} of {len(sums)}" if len(sums) > 1 else ""
    size, exact, why = weighed.stages[worst], weighed.exact, f"{weighed.reason}{at}"
    weights = Term(name="weights", bytes=size, exact=exact, reason=why)
    cache = pool.term(pool.stages[worst], pool.reason(worst))
    if not (lora := options.lora):
        return weights, cache
    why = f"{lora.max_loras} adapters of rank {lora.max_rank} for every target"
    size, exact = weighed.adapters[worst], weighed.adapters_exact
    return weights, cache, Term(name="lora", bytes=size, exact=exact, reason=why)
