"""What one replica asks of each accelerator of a kind, or of the RAM where processors run it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Refusal
from moorage.common.units import human_bytes
from moorage.common.values import Origin
from moorage.memory import MemoryModel
from moorage.memory.engine_setup import MemoryQuery
from moorage.memory.need import CpuNeed, Need
from moorage.memory.numbers import largest
from moorage.memory.spec_options import wanted_concurrency
from moorage.models.profile import ModelProfile
from moorage.placement.engine import EngineTraits
from moorage.placement.memory_models import Memory
from moorage.placement.view import AcceleratorKind
from moorage.spec import ModelSpec, Policy
from moorage.spec.arguments import argument, switch, user_tokens, whole_number

LEAST_CONTEXT = 8192
"""An `auto` context is shortened to what fits, and below this not for the sake of fitting."""

GRAIN = 1000
"""Utilization is given to the engine in thousandths."""


@dataclass(frozen=True, slots=True)
class Split:
    """How the model is cut up: `tensor` ranks share a layer, `pipeline` stages the layers."""

    tensor: int = 1
    pipeline: int = 1


@dataclass(frozen=True, slots=True)
class Allocation:
    """What is taken of one accelerator.

    Attributes:
        bytes: Memory that is claimed.
        utilization: Share of the whole memory that the engine is told to take.
        tokens: Context that it serves.
        need: What the memory is for.
    """

    bytes: int
    utilization: float
    tokens: int
    need: Need


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """What the user said about memory.

    Attributes:
        context: Longest context in tokens.
        stated: Whether the user wants exactly this context; else it may be shortened.
        concurrency: Requests of full context that the cache must hold at once.
        policy: Whether accelerators are shared or taken whole.
        utilization: Share of each accelerator that the user's arguments fix; 0 = they do not.
        attention_heads: Heads that the tensor-parallel ranks share evenly; 0 = unknown.
        vision_heads: Heads of the vision tower, likewise; 0 = there is none, or it is left out.
    """

    context: int
    stated: bool = False
    concurrency: int = 1
    policy: Policy = Policy.FITTED
    utilization: float = 0.0
    attention_heads: int = 0
    vision_heads: int = 0

    @property
    def least_context(self) -> int:
        """The shortest context that still counts as what was asked for."""
        return self.context if self.stated else min(self.context, LEAST_CONTEXT)


def memory_request(spec: ModelSpec, profile: ModelProfile) -> MemoryRequest:
    """What a spec and its engine arguments say about memory.

    Raises:
        Failure: `BAD_SPEC` when an argument is malformed.
    """
    tokens = user_tokens(spec.engine.args)
    length = argument(tokens, "--max-model-len")
    stated = profile.context_origin == Origin.USER
    context = profile.context
    if length not in (None, "auto", "-1"):
        context, stated = whole_number(tokens, "--max-model-len") or context, True
    return MemoryRequest(
        context=context,
        stated=stated,
        concurrency=wanted_concurrency(spec, context),
        policy=spec.placement.policy,
        utilization=_share(argument(tokens, "--gpu-memory-utilization")),
        attention_heads=profile.attention_heads or 0,
        vision_heads=0 if switch(tokens, "--language-model-only") else profile.vision_heads or 0,
    )


def _share(text: str | None) -> float:
    if text is None:
        return 0.0
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: --gpu-memory-utilization {text} is no share between 0 and 1",
            suggestion="Leave it out: the smallest share that serves the spec is derived.",
        )
    return share


class Demand:
    """Answers for each kind of accelerator and each split, and remembers the answers."""

    def __init__(self, memory: Memory, wish: MemoryRequest) -> None:
        self.memory, self.wish = memory, wish
        self._asks: dict[tuple[AcceleratorKind, Split, int], Allocation | str] = {}

    def least(self, kind: AcceleratorKind, split: Split) -> Allocation | str:
        """The smallest claim that serves what was asked for, or why none does."""
        return self._ask(kind, split, self.wish.least_context)

    def full(self, kind: AcceleratorKind, split: Split) -> Allocation | str:
        """The claim that serves the whole context, or why none does."""
        return self._ask(kind, split, self.wish.context)

    def fitted(self, kind: AcceleratorKind, split: Split, budget: int) -> Allocation | str:
        """The claim for the longest context within a budget of bytes on each accelerator."""
        ask = self.full(kind, split)
        if isinstance(ask, str) or not _holds(ask, kind.total, budget):
            tokens = self._longest(kind, split, budget)
            enough = tokens >= self.wish.least_context
            ask = self._ask(kind, split, tokens) if enough else self.least(kind, split)
        if self._takes_all and isinstance(ask, Allocation) and ask.need.stated is None:
            return _enlarged(ask, kind.total, budget)
        return ask

    @property
    def _takes_all(self) -> bool:
        return self.wish.policy == Policy.WHOLE and not self.wish.utilization

    def uneven(self, ranks: int) -> str:
        """Why so many tensor-parallel ranks cannot share the model's heads; empty = they can."""
        heads = {"attention": self.wish.attention_heads, "vision": self.wish.vision_heads}
        for name, number in heads.items():
            if number % ranks:
                return f"{ranks} do not divide {number} {name} heads"
        return ""

    def _ask(self, kind: AcceleratorKind, split: Split, tokens: int) -> Allocation | str:
        key = (kind, split, tokens)
        if key not in self._asks:
            self._asks[key] = self._work_out(kind, split, tokens)
        return self._asks[key]

    def _work_out(self, kind: AcceleratorKind, split: Split, tokens: int) -> Allocation | str:
        wish = self.wish
        if uneven := self.uneven(split.tensor):
            return uneven
        need = self.memory.need(
            MemoryQuery(
                total=kind.total,
                device_name=kind.name,
                tensor=split.tensor,
                pipeline=split.pipeline,
                tokens=tokens,
                concurrency=wish.concurrency,
            )
        )
        if isinstance(need, Refusal):
            return need.note
        if need.stated is not None and (need.stated - need.outside) * GRAIN < kind.total:
            stated, outside = human_bytes(need.stated), human_bytes(need.outside)
            return f"memory.claim {stated} leaves the engine nothing: {outside} are outside of it"
        if wish.utilization:
            return self._with_stated_utilization(need, kind.total)
        return Allocation(
            bytes=need.claim(kind.total),
            utilization=need.utilization(kind.total),
            tokens=tokens,
            need=need,
        )

    def _with_stated_utilization(self, need: Need, total: int) -> Allocation | str:
        share = self.wish.utilization
        budget = ceil(total * share)
        if need.inside > budget:
            return (
                f"--gpu-memory-utilization {share:g} is too small: {need.tokens} tokens take"
                f" {need.utilization(total):g}"
            )
        return Allocation(
            bytes=budget + need.outside, utilization=share, tokens=need.tokens, need=need
        )

    def _longest(self, kind: AcceleratorKind, split: Split, budget: int) -> int:
        if self.wish.stated:
            return 0

        def fits(tokens: int) -> bool:
            ask = self._ask(kind, split, tokens)
            return not isinstance(ask, str) and _holds(ask, kind.total, budget)

        return largest(fits, self.wish.context)


def _holds(ask: Allocation, total: int, budget: int) -> bool:
    """Whether a claim is within a budget, and holds its own parts where the user states it."""
    return ask.bytes <= budget and ask.need.fits(total, budget)


def _enlarged(ask: Allocation, total: int, budget: int) -> Allocation:
    """All of a budget, for a larger cache than was asked for."""
    outside = ask.need.outside
    steps = (budget - outside) * GRAIN // total
    # The engine rounds up, and a share in floating point may be a trace too large.
    while ceil(total * (steps / GRAIN)) + outside > budget:
        steps -= 1
    share = max(ask.utilization, steps / GRAIN)
    claim = max(ask.bytes, ceil(total * share) + outside)
    return Allocation(bytes=claim, utilization=share, tokens=ask.tokens, need=ask.need)


@dataclass(frozen=True, slots=True)
class CpuAllocation:
    """What is taken of the RAM.

    Attributes:
        bytes: RAM that is claimed, and the limit of a container.
        tokens: Context that is served.
        cache: Bytes of the KV cache, in whole GiB; 0 = the engine decides.
        need: What the RAM is for; None where it is only estimated.
    """

    bytes: int
    tokens: int
    cache: int = 0
    need: CpuNeed | None = None


class CpuDemand:
    """Answers for contexts, as exact as the engine allows.

    Args:
        exact: The memory model; None = there is only the engine's estimate.
        profile: The model.
        engine: The engine.
        wish: Context and concurrency that are wanted.
        stated: Bytes that the spec states; 0 = they are worked out.
    """

    def __init__(
        self,
        exact: MemoryModel | None,
        profile: ModelProfile,
        engine: EngineTraits,
        wish: MemoryRequest,
        stated: int,
    ) -> None:
        self._exact = exact if engine.reserves_cache else None
        self._profile, self._engine, self._wish, self._stated = profile, engine, wish, stated

    def least(self, ranks: int = 1) -> CpuAllocation:
        """The smallest claim that serves what was asked for, on each of so many hosts."""
        return self._ask(self._wish.least_context, ranks)

    def full(self, ranks: int = 1) -> CpuAllocation:
        """The claim that serves the whole context, on each of so many hosts."""
        return self._ask(self._wish.context, ranks)

    def fitted(self, budget: int, ranks: int = 1) -> CpuAllocation:
        """The claim for the longest context within a budget of bytes; a stated claim is one."""
        budget = self._stated or budget
        full = self._worked_out(self._wish.context, ranks)
        if full.bytes > budget and full.need and not self._wish.stated:
            longest = largest(
                lambda n: self._worked_out(n, ranks).bytes <= budget, self._wish.context
            )
            full = self._worked_out(max(longest, self._wish.least_context), ranks)
        return CpuAllocation(self._stated or full.bytes, full.tokens, full.cache, full.need)

    def _ask(self, tokens: int, ranks: int) -> CpuAllocation:
        found = self._worked_out(tokens, ranks)
        return (
            CpuAllocation(self._stated, tokens, found.cache, found.need) if self._stated else found
        )

    def _worked_out(self, tokens: int, ranks: int) -> CpuAllocation:
        """An estimate does not know how ranks share a model: each counts with all of it."""
        if self._exact:
            need = self._exact.cpu_need(
                tokens=tokens, concurrency=self._wish.concurrency, ranks=ranks
            )
            if isinstance(need, CpuNeed):
                return CpuAllocation(need.ram, tokens, need.cache_bytes, need)
        ram, cache = self._engine.ram_on_cpu(self._profile)
        return CpuAllocation(ram, tokens, cache)
