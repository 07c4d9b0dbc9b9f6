"""The memory of a GGUF model in llama.cpp, from its header.

Weights and KV cache follow llama.cpp's own accounting (`llama-kv-cache.cpp`). The formula of the
compute buffer fits the observed reserve for the widest part of a layer: `tests/memory/test_gguf.py`
compares it with logs of the real server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import MIB
from moorage.memory.estimates import CONTEXT
from moorage.memory.gguf_header import GgufHeader, header_of
from moorage.memory.gguf_layers import Keeps, Layers, layers_of
from moorage.memory.gguf_split import LayerBytes, fullest, largest_share
from moorage.memory.need import Batch, CpuNeed, MemoryQuery, Need, Term
from moorage.memory.refusal import unknown
from moorage.models.gguf import BLOCKS
from moorage.models.gguf_config import GGUF, LAST, lacks_pooling
from moorage.models.pin import AssetRole
from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel
from moorage.spec import Mode, ModelSpec
from moorage.spec.arguments import EngineArguments

BATCH = 512
"""Tokens computed at once (`--ubatch-size`), if inputs may be computed in parts."""

CELLS = 256
"""A slot's context is rounded up to a multiple of this many tokens."""

FLOAT, MASK = 4, 2
"""Bytes of an intermediate result, and of an entry of the attention mask."""

INDEXES = 31
"""Bytes for each token of a batch: token ids, positions and cache indexes."""

FORWARD, STREAMS = 3, 5
"""Results alive at once: of the feed-forward part's width, and of the model's width."""

PROMPT_CACHE = 512 * MIB
"""RAM for the beginnings of prompts (`--cache-ram`); llama-server's own default is 8 GiB."""

PROMPTS = ("--cache-ram", "-cram")

CHECKPOINTS = 2
"""Checkpoints of each slot (`--ctx-checkpoints`); llama-server's own default is 32.

One is taken near the end of each prompt, so that the next turn of a conversation starts there.
"""

CHECKPOINT_NAMES = ("--ctx-checkpoints", "--swa-checkpoints", "-ctxcp")

CELL = 16
"""Bytes of a checkpoint for each token in addition to keys and values; measured 12.6."""

PROCESS = 192 * MIB
"""RAM of the server in addition to its buffers; measured 83 MiB with a tiny vocabulary."""

ELEMENT_BYTES = {name.lower(): size / block for name, block, size in BLOCKS.values()}
"""Bytes of one element by type."""

ENCODER = "bert"
"""Part of the names of architectures that keep no keys and values (`create_memory`)."""

LENGTH = ("--ctx-size", "-c")
CACHE_TYPES = {"key": ("--cache-type-k", "-ctk"), "value": ("--cache-type-v", "-ctv")}
CACHE_TYPE = "f16"
"""Default cache type; a draft model uses it whatever type the model uses."""


@dataclass(frozen=True)
class Loaded:
    """Companions loaded with a model.

    Attributes:
        adapters: Bytes of the tensors of its LoRA adapters, which stay loaded.
        draft: The draft model, whose context is as long as the model's in each slot.
        stated_draft: Bytes that the spec states for the draft model, its cache included.
    """

    adapters: int = 0
    draft: GgufHeader | None = None
    stated_draft: int | None = None


@dataclass(frozen=True, eq=False)
class GgufMemory:
    """The memory of one GGUF model under the options of its spec.

    Attributes:
        header: The model's header.
        arguments: The user's engine arguments.
        loaded: Companions loaded with the model.
        claim: Bytes of each accelerator that the spec states; None = not stated.
        divisible: Whether to refuse, so that fewer layers are tried, if the claim is too small.
        offloaded: Layers on the accelerators, counted from the last; 0 = the whole model.
        whole_inputs: Whether a batch must hold a whole input.
    """

    header: GgufHeader
    arguments: EngineArguments
    loaded: Loaded = Loaded()
    claim: int | None = None
    divisible: bool = False
    offloaded: int = 0
    whole_inputs: bool = False

    @property
    def layers(self) -> int:
        """Layers of which some may stay in RAM; 0 = their sizes are unknown."""
        count = self.header.layers
        known = all(f"blk.{layer}" in self.header.parts for layer in range(count))
        return count if known and not isinstance(self.cpu_need(tokens=1), Refusal) else 0

    def with_layers(self, offloaded: int) -> GgufMemory:
        """The same model with `offloaded` layers on the accelerators."""
        return replace(self, divisible=True, offloaded=offloaded)

    def need(self, query: MemoryQuery) -> Need | Refusal:
        """Memory of one of the accelerators that share the layers."""
        if 0 < self._offloaded_layers < query.ranks:
            note = f"{self._offloaded_layers} layers are too few for {query.ranks} accelerators"
            return Refusal(Reason.REJECTED, note)
        try:
            terms = self._on_fullest(query)
        except Refusal as refusal:
            if self.claim is None:
                return refusal.with_traceback(None)
            stated = Term.estimate("stated", self.claim, "memory.claim in the spec")
            return Need.for_query(query, (stated,), stated=self.claim)
        driver = Term.estimate(
            "context", CONTEXT, "the driver's context of one process", inside=False
        )
        batch = self._batch(self._length(query.tokens, query.concurrency))
        need = Need.for_query(query, (*terms, driver), batch=batch, stated=self.claim)
        taken = need.inside + need.outside
        if self.divisible and taken > (self.claim or taken):
            return Refusal(
                Reason.REJECTED, f"memory.claim holds fewer layers: {taken} B are needed"
            )
        return need

    def cpu_need(self, *, tokens: int, concurrency: int = 1, ranks: int = 1) -> CpuNeed | Refusal:  # noqa: ARG002
        """The RAM that it needs on its only host."""
        try:
            terms = self.terms(tokens, concurrency)
        except Refusal as refusal:
            return refusal.with_traceback(None)
        beginnings = prompt_cache(self.arguments)
        prompts = Term.estimate("prompt_cache", beginnings, "beginnings of prompts: --cache-ram")
        process = Term.estimate("processes", PROCESS, "the server itself")
        return CpuNeed(
            tokens=tokens,
            concurrency=concurrency,
            batch=self._batch(self._length(tokens, concurrency)),
            terms=(*terms, *self._checkpoints(tokens, concurrency), prompts, process),
            cache_bytes=terms[1].bytes,
        )

    def ram_of_checkpoints(self, tokens: int, slots: int) -> int:
        """Bytes of RAM for checkpoints, wherever the layers are; 0 where sizes are unknown."""
        try:
            return sum(term.bytes for term in self._checkpoints(tokens, slots))
        except Refusal:
            return 0

    def ram_of_layers(self, tokens: int, slots: int) -> int:
        """Bytes of RAM for the layers that stay off the accelerators, and for the input."""
        there = self._on_accelerators(tokens, slots)[1].bytes
        _, cache, *others = self.terms(tokens, slots)
        offloaded = sum(self._layer_bytes()[-self.offloaded :])
        weights = self.header.weights - offloaded - self._projector
        rest = sum(term.bytes for term in others if term.name != "draft")
        return weights + cache.bytes - there + rest

    @property
    def _offloaded_layers(self) -> int:
        """Layers on the accelerators; 0 = unknown."""
        return self.offloaded or self.header.layers

    def _on_fullest(self, query: MemoryQuery) -> tuple[Term, ...]:
        """The terms of the accelerator that holds the most of the divided layers."""
        terms, ranks = self._on_accelerators(query.tokens, query.concurrency), query.ranks
        if ranks == 1:
            return terms
        *divided, compute = terms
        draft, most = self.loaded.draft, fullest(self._divided(query, terms[0].bytes), ranks)
        layers = {
            "lora": self._offloaded_layers,
            "draft": draft.layers if draft else self._offloaded_layers,
        }
        sizes = {"weights": most.weights, "kv_cache": most.cache}
        for term in divided[len(sizes) :]:
            sizes[term.name] = term.bytes * largest_share(layers[term.name], ranks)
        why = f"the fullest of {ranks} accelerators, of "
        return (*(_part(one, ceil(sizes[one.name]), why + one.reason) for one in divided), compute)

    def _divided(self, query: MemoryQuery, weights: int) -> list[LayerBytes]:
        """The layers on accelerators, and last the output with all tensors that are of no layer."""
        caches = self._layer_caches(query.tokens, query.concurrency)[-self._offloaded_layers :]
        if not self.layers:
            each = weights / (self._offloaded_layers + 1)
            return [*(LayerBytes(each, cache) for cache in caches), LayerBytes(each)]
        sizes = self._layer_bytes()[-self._offloaded_layers :]
        rest = weights - sum(sizes)
        if "output" in self.header.parts and not self.offloaded:
            rest -= self.header.parts.get("token_embd", 0)  # the input stays in RAM
        each_layer = zip(sizes, caches, strict=True)
        return [*(LayerBytes(size, cache) for size, cache in each_layer), LayerBytes(rest)]

    def _on_accelerators(self, tokens: int, slots: int) -> tuple[Term, ...]:
        """The terms that accelerators hold: for the whole model, or for some layers.

        To compute a long prompt, an accelerator copies weights from RAM, so one layer is added.
        """
        weights, cache, *companions, compute = self.terms(tokens, slots)
        if not self.offloaded:
            return weights, cache, *companions, compute
        every, number, parts = self._layer_bytes(), self.offloaded, self.header.parts
        rest = self._projector + (parts.get("output") or parts.get("token_embd", 0))
        caches = self._layer_caches(tokens, slots)[-number:]
        part, largest = f"the last {number} of {len(every)} layers", max(every)
        others = "the output and the projector" if self._projector else "and the output"
        return (
            _part(weights, sum(every[-number:]) + rest, f"{part}, {others}"),
            _part(cache, ceil(sum(caches)), f"{part}: {cache.reason}"),
            *companions,
            _part(compute, compute.bytes + largest, f"{compute.reason} + a layer of {largest} B"),
        )

    @property
    def _projector(self) -> int:
        """Bytes of the projector, which is no part of the model; accelerators hold it whole."""
        return max(0, self.header.weights - sum(self.header.parts.values()))

    def _layer_bytes(self) -> list[int]:
        return [self.header.parts[f"blk.{layer}"] for layer in range(self.layers)]

    def terms(self, tokens: int, slots: int) -> tuple[Term, ...]:
        """Weights, cache, companions and compute buffer of the whole model, for `slots` slots."""
        length, caches = self._length(tokens, slots), self._layer_caches(tokens, slots)
        files = f"{self.header.weights} B of tensors"
        cache, exact = self._cache_reason(length, slots, sum(caches)), self._kept.exact
        batch = self._batch(length).tokens
        row, why = self._row_bytes()
        # Layers with a window have a mask of their own.
        masked = length + self._kept.windowed(length, batch)
        compute = batch * (row + INDEXES + MASK * masked)
        formula = f"{batch} tokens x ({why} + the mask of {masked} tokens)"
        return (
            Term(name="weights", bytes=self.header.weights, exact=True, reason=files),
            Term(name="kv_cache", bytes=int(sum(caches)), exact=exact, reason=cache),
            *self._companions(tokens, slots),
            Term.estimate("activation", compute, formula),
        )

    def _companions(self, tokens: int, slots: int) -> Iterator[Term]:
        lora, stated = self.loaded.adapters, self.loaded.stated_draft
        if lora:
            reason = f"{lora} B of tensors of LoRA adapters"
            yield Term(name="lora", bytes=lora, exact=True, reason=reason)
        if stated is not None:
            yield Term.estimate("draft", stated, "memory.draft in the spec")
        elif self.loaded.draft:
            parts = DraftMemory(self.loaded.draft, self.arguments).terms(tokens, slots)
            reason = " + ".join(f"{part.name} {part.bytes} B" for part in parts)
            yield Term.estimate("draft", sum(part.bytes for part in parts), reason)

    def _cache_type(self, part: str) -> str:
        return self.arguments.value(*CACHE_TYPES[part]) or CACHE_TYPE

    def _checkpoints(self, tokens: int, slots: int) -> Iterator[Term]:
        """What layers with a window or a state keep of earlier moments, to go back to."""
        kept, length = self._kept, self._length(tokens, slots)
        stated = self.arguments.whole_number(*CHECKPOINT_NAMES)
        number, window = CHECKPOINTS if stated is None else stated, min(length, kept.window)
        if kept.whole or not number or all(kind == Keeps.ALL for kind in kept.kinds):
            return
        size = ceil(sum(self._caches({Keeps.WINDOW: window}))) + window * CELL
        reason = f"{slots} x {number} moments x {size} B: --ctx-checkpoints"
        yield Term.estimate("checkpoints", slots * number * size, reason)

    def _layer_caches(self, tokens: int, slots: int) -> list[float]:
        """Bytes of the cache of each layer."""
        kept, length = self._kept, self._length(tokens, slots)
        windowed = kept.windowed(length, self._batch(length).tokens)
        caches = self._caches({Keeps.ALL: length, Keeps.WINDOW: windowed})
        return [slots * each for each in caches]

    def _caches(self, cells: Mapping[Keeps, int]) -> list[float]:
        """Bytes that each layer keeps for one slot: its state, or these tokens of its kind."""
        header = self.header
        layers, heads = header.number("block_count"), header.key_heads
        heads = [*heads, *[max(heads)] * layers][:layers]
        if ENCODER in header.architecture:
            return [0] * layers
        width = header.number("embedding_length") // header.number("attention.head_count")
        each = 0.0
        for key in CACHE_TYPES:
            kind = self._cache_type(key)
            if kind not in ELEMENT_BYTES:
                raise unknown(f"the size of the cache type {kind} is not known")
            each += (header.optional(f"attention.{key}_length") or width) * ELEMENT_BYTES[kind]
        kept = self._kept
        return [
            kept.state_bytes if kind == Keeps.STATE else cells.get(kind, 0) * number * each
            for kind, number in zip(kept.kinds, heads, strict=True)
        ]

    @property
    def _kept(self) -> Layers:
        """What each layer keeps of the context."""
        header = self.header
        layers = layers_of(header.architecture, header.sizes, header.number("block_count"))
        return replace(layers, whole=self.arguments.has("--swa-full"))

    def _cache_reason(self, length: int, slots: int, size: float) -> str:
        kept, reason = self._kept, f"{slots} x {length} tokens x {size / slots / length:g} B"
        if few := sum(kind != Keeps.ALL for kind in kept.kinds):
            tokens = kept.windowed(length, self._batch(length).tokens)
            what = f"{tokens} tokens" if tokens else "a state"
            return f"{reason}; {few} of {len(kept.kinds)} layers keep {what}"
        return reason if kept.exact else f"{reason}; what its layers keep is not known"

    def _row_bytes(self) -> tuple[int, str]:
        """Bytes of the intermediate results of one token, in the widest part of a layer."""
        header = self.header
        model, heads = header.number("embedding_length"), header.number("attention.head_count")
        head = header.optional("attention.key_length") or model // heads
        keys = max(header.key_heads) * head
        experts = header.optional("expert_used_count")
        wide = header.optional("expert_feed_forward_length") or header.number("feed_forward_length")
        forward = FORWARD * wide * max(1, experts) + (STREAMS + experts) * model
        # Keys and values reuse freed results of the model's width, unless they are wider.
        attention = 2 * heads * head + STREAMS * model + 2 * keys * (keys > model)
        floats = max(forward, attention)
        return floats * FLOAT, f"{floats} results x {FLOAT} B"

    def _length(self, tokens: int, slots: int) -> int:
        """The context of a slot, as the server rounds it up; old records may state the total."""
        total = self.arguments.whole_number(*LENGTH)
        return -(-(total // slots if total else tokens) // CELLS) * CELLS

    def _batch(self, length: int) -> Batch:
        usual = length if self.whole_inputs else BATCH
        given = self.arguments.whole_number("--ubatch-size", "-ub") or usual
        return Batch(tokens=min(given, length), seqs=1)


class DraftMemory(GgufMemory):
    """The memory of a draft model, which ignores the options of the model's cache."""

    def _cache_type(self, part: str) -> str:  # noqa: ARG002
        return CACHE_TYPE


def prompt_cache(arguments: EngineArguments) -> int:
    """Bytes of RAM for the beginnings of prompts.

    Raises:
        Failure: `BAD_SPEC` when the user's size is no number of MiB, or sets no limit.
    """
    stated = arguments.whole_number(*PROMPTS)
    return PROMPT_CACHE if stated is None else stated * MIB


def gguf_memory(spec: ModelSpec, model: ResolvedModel, profile: ModelProfile) -> GgufMemory:
    """The memory model of a resolved GGUF model under its spec."""
    loras = (one.model for one in model.companions if one.role == AssetRole.ADAPTER)
    draft, stated = model.draft, spec.memory
    loaded = Loaded(
        adapters=sum(lora.weights.bytes for lora in loras),
        draft=header_of(draft, draft.weights.bytes) if draft else None,
        stated_draft=None if stated.draft is None else int(stated.draft),
    )
    return GgufMemory(
        header_of(model, profile.weight_bytes),
        spec.engine.arguments,
        loaded,
        whole_inputs=_takes_whole_inputs(spec.engine.arguments, model, profile),
        claim=None if stated.claim is None else int(stated.claim),
        divisible=spec.placement.partial_offload,
    )


def _takes_whole_inputs(
    arguments: EngineArguments, model: ResolvedModel, profile: ModelProfile
) -> bool:
    """Whether a batch must hold a whole input: to rank it, or to pool all of its tokens."""
    header = model.config.get(GGUF)
    kind = header.get("pooling_type") if isinstance(header, Mapping) else None
    last = kind == LAST or lacks_pooling(profile.architectures)
    pooling = arguments.value("--pooling") or ("last" if last else "")
    return profile.mode == Mode.RERANKING or (profile.mode == Mode.EMBEDDING and pooling != "last")


def _part(term: Term, size: int, reason: str) -> Term:
    return term.model_copy(update={"bytes": size, "reason": reason})
