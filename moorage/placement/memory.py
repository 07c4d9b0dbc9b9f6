"""The memory that the user requests, and models of the memory that an engine takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB, human_bytes
from moorage.common.values import Origin
from moorage.memory.calibration import (
    BATCHED,
    PIPELINE,
    SEQUENCES,
    TENSOR,
    Measurement,
    calibration_key,
    corrected,
)
from moorage.memory.demand import memory_model
from moorage.memory.estimates import CONTEXT, NCCL
from moorage.memory.gguf import gguf_memory
from moorage.memory.graph_place import may_be_outside
from moorage.memory.need import MemoryQuery, Need, Term, largest
from moorage.memory.sizing import Sizeable
from moorage.memory.stated_options import keeps_towers_whole, wanted_concurrency
from moorage.memory.static_part import FRACTION
from moorage.models.files import GGUF
from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel
from moorage.spec import ModelSpec, Policy
from moorage.spec.arguments import EngineArguments

Memory = Callable[[MemoryQuery], Need | Refusal]
"""Computes the memory of one rank on an accelerator, or why there is no answer."""


def memory_of(spec: ModelSpec, model: ResolvedModel, profile: ModelProfile) -> Sizeable:
    """The memory model of a resolved model: llama.cpp's rules for GGUF, else vLLM's.

    Raises:
        Failure: `BAD_SPEC` when an engine argument is malformed.
    """
    rules = gguf_memory if profile.format == GGUF else memory_model
    return rules(spec, model, profile)


OVERHEAD = GIB
"""Bytes for intermediate results and graphs, in addition to a fifth of the weights."""

SHARE_WHEN_UNKNOWN = 0.9
"""Share of an accelerator to take if nothing is known about the cache."""


def estimated_memory(
    profile: ModelProfile, why: str, companion_bytes: int, query: MemoryQuery
) -> Need | Refusal:
    """Estimate weights from file sizes and the cache from layers and heads; no term is exact.

    The companions are the adapters and the draft model.
    """
    if not profile.weight_bytes:
        reason = f"{why}, and the size of the weights is unknown: state `memory.claim`"
        return Refusal(Reason.UNKNOWN, reason)
    weights = profile.weight_bytes // query.ranks + companion_bytes
    rest = (weights, weights // 5 + OVERHEAD)
    graphs = OVERHEAD * may_be_outside(query)
    terms = (
        Term.estimate("weights", rest[0], f"{why}: the size of the files over the ranks"),
        Term.estimate("activation", rest[1], "a fifth of the weights and 1 GiB"),
        _estimated_cache(profile, query, query.total - sum(rest)),
        Term.estimate("cuda_graphs", graphs, "on top of the share in some versions", inside=False),
        Term.estimate("context", CONTEXT, "the driver's context of one process", inside=False),
        Term.estimate("nccl", NCCL * (query.ranks > 1), "between ranks", inside=False),
    )
    return Need.for_query(query, tuple(term for term in terms if term.bytes))


def _estimated_cache(profile: ModelProfile, query: MemoryQuery, left: int) -> Term:
    each, heads = profile.kv_bytes_per_token, profile.kv_heads
    if not each or not heads:
        rest = max(0, int(left - (1 - SHARE_WHEN_UNKNOWN) * left))
        return Term.estimate("kv_cache", rest, "the cache of this model is unknown: what is left")
    tokens = query.tokens * query.concurrency
    size = ceil(each * tokens / min(query.tensor, heads) / query.pipeline)
    return Term.estimate("kv_cache", size, f"{tokens} tokens x {each} B over the ranks")


def stated_memory(claim: int, query: MemoryQuery) -> Need:
    """The bytes that the spec states for each accelerator; nothing is derived."""
    return Need.for_query(
        query, (Term.estimate("stated", claim, "memory.claim in the spec"),), stated=claim
    )


def with_server(engine: Memory, size: int, query: MemoryQuery) -> Need | Refusal:
    """The need of an engine whose server takes `size` bytes of each accelerator as a process."""
    need = engine(query)
    if isinstance(need, Refusal):
        return need
    server = Term.estimate(
        "server", size, "the driver's context of the server, and its pool", inside=False
    )
    return need.model_copy(update={"terms": (*need.terms, server)})


def exact_or_estimated(
    exact: Memory, profile: ModelProfile, companion_bytes: int, query: MemoryQuery
) -> Need | Refusal:
    """The answer of the exact model, and the estimate if its rules do not cover a query."""
    answer = exact(query)
    if not isinstance(answer, Refusal) or answer.reason != Reason.UNKNOWN:
        return answer
    return estimated_memory(profile, f"not exact ({answer.note})", companion_bytes, query)


@dataclass(frozen=True)
class CalibratedMemory:
    """A memory model whose estimates give way to measurements of the same settings.

    Attributes:
        arguments: Engine arguments: those that fields of the spec add, then the user's own.
    """

    exact: Memory
    profile: ModelProfile
    engine: str
    version: str
    arguments: tuple[str, ...]
    measured: Sequence[Measurement]

    def need(self, query: MemoryQuery) -> Need | Refusal:
        """Memory of one rank on an accelerator, or why there is no answer."""
        need = self.exact(query)
        if isinstance(need, Refusal) or not (measurement := self._measurement(query, need)):
            return need
        found = corrected({term.name: term.bytes for term in need.terms}, measurement.measured)
        terms = []
        for term in need.terms:
            if (size := found[term.name]) != term.bytes:
                reason = f"as {measurement.release} measured; predicted {human_bytes(term.bytes)}"
                term = term.model_copy(update={"bytes": size, "exact": False, "reason": reason})
            terms.append(term)
        return need.model_copy(update={"terms": tuple(terms)})

    def _measurement(self, query: MemoryQuery, need: Need) -> Measurement | None:
        """The newest measurement with these settings; a device's name implies its type."""
        sizes = {TENSOR[0]: query.tensor, PIPELINE[0]: query.pipeline}
        derived = [word for name, size in sizes.items() if size > 1 for word in (name, str(size))]
        # The launch states these options too if the need is exact.
        derived += [BATCHED[0], str(need.batch.tokens), SEQUENCES[0], str(need.batch.seqs)]
        arguments = (*derived, *self.arguments)
        key = calibration_key(
            self.profile, self.engine, self.version, "", query.device_name, arguments
        )
        keys = ((one, one.key.model_copy(update={"accelerator_type": ""})) for one in self.measured)
        return next((one for one, own in keys if own == key), None)


BASELINE_CONTEXT = 8192
"""GPUStack's cap on a context that the user does not state."""

LEAST_CONTEXT = 8192
"""An `auto` context is shortened until it fits, but not below this length."""


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """The context, concurrency and share of memory that the user requests.

    Attributes:
        context: Longest context in tokens.
        stated: Whether the user wants exactly this context; else it may be shortened.
        concurrency: Requests of full context that the cache must hold at once.
        utilization: Share of each accelerator that the user's arguments state; 0 = not stated.
        static_fraction: Share of what is free before loading that they state (SGLang); 0 = not
            stated.
        attention_heads: Heads that the tensor-parallel ranks must share evenly; 0 = unknown.
        vision_heads: Heads of the vision tower, likewise; 0 = no tower, not loaded, or whole on
            each rank.
    """

    context: int
    stated: bool = False
    concurrency: int = 1
    policy: Policy = Policy.FITTED
    utilization: float = 0.0
    static_fraction: float = 0.0
    attention_heads: int = 0
    vision_heads: int = 0

    @property
    def least_context(self) -> int:
        """The shortest context that still serves the request."""
        return self.context if self.stated else min(self.context, LEAST_CONTEXT)

    def served_context(self, fits: Callable[[int], bool]) -> int:
        """The context of a seat: whole, else the longest that fits, but never below the least.

        `fits` must be monotonic: if a context fits, every shorter one fits too.
        """
        if self.stated or fits(self.context):
            return self.context
        return max(largest(fits, self.context), self.least_context)

    @property
    def capped_context(self) -> int:
        """The context under the policy `baseline`, which caps a context that is not stated."""
        return self.context if self.stated else min(self.context, BASELINE_CONTEXT)


def memory_request(spec: ModelSpec, profile: ModelProfile) -> MemoryRequest:
    """The memory request of a spec and its engine arguments.

    Raises:
        Failure: `BAD_SPEC` when an argument is malformed.
    """
    args = spec.engine.arguments
    length = args.value("--max-model-len")
    divides_vision = not (args.switch("--language-model-only") or keeps_towers_whole(args))
    stated = profile.context_origin == Origin.USER
    context = profile.context
    if length not in (None, "auto", "-1"):
        context, stated = args.whole_number("--max-model-len") or context, True
    return MemoryRequest(
        context=context,
        stated=stated,
        concurrency=wanted_concurrency(spec, context, profile.encoder_tokens or 0),
        policy=spec.placement.policy,
        utilization=_share(args, "--gpu-memory-utilization"),
        static_fraction=_share(args, FRACTION),
        attention_heads=profile.attention_heads or 0,
        vision_heads=(profile.vision_heads or 0) if divides_vision else 0,
    )


def _share(args: EngineArguments, name: str) -> float:
    text = args.value(name)
    if text is None:
        return 0.0
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: {name} {text} is no share between 0 and 1",
            suggestion="Leave it out: the smallest share that serves the spec is derived.",
        )
    return share
