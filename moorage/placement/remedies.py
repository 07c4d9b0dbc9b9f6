"""What a model lacks, and what would make it fit: each remedy is tried on the fleet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import human_bytes
from moorage.inventory.snapshot import FleetSnapshot
from moorage.memory.demand import MemoryModel
from moorage.memory.need import MemoryQuery, Need
from moorage.memory.options import wanted_concurrency
from moorage.placement.better_hosts import Trial, empty_or_extended_host, larger_accelerators
from moorage.placement.demand import Demand, Split
from moorage.placement.explanation import Verdict
from moorage.placement.memory import ExactOrEstimatedMemory, Memory, MemoryRequest
from moorage.placement.request import Request
from moorage.placement.view import view_of
from moorage.spec import EngineName

OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--kv-cache-dtype fp8", {"kv_cache_dtype": "fp8"}),
    ("--max-num-seqs 64", {"max_seqs": 64}),
    ("--max-num-batched-tokens 2048", {"batched_tokens": 2048}),
    ("--enforce-eager", {"enforce_eager": True}),
)
"""Engine arguments that save memory, the least costly first, and the options they stand for."""

CHECKPOINTS = (("FP8", 0.52), ("4 bits", 0.3))
"""Checkpoints in fewer bits: their weights as a share of 16-bit ones, scales included."""

FULL_WIDTH = ("bfloat16", "float16", "")


def other_options(request: Request, exact: MemoryModel) -> Iterator[tuple[str, Request]]:
    """The request under options that save memory, one after the other and all together."""
    combined: dict[str, Any] = {}
    for argument, change in OPTIONS:
        combined |= change
        yield argument, _with_memory(request, exact.with_options(**change))
    arguments = " ".join(argument for argument, _ in OPTIONS)
    yield arguments, _with_memory(request, exact.with_options(**combined))


def other_checkpoints(request: Request) -> Iterator[tuple[str, Request]]:
    """The request as if the weights were stored in fewer bits: an estimate."""
    profile = request.profile
    if profile.quantization or profile.dtype not in FULL_WIDTH:
        return
    for name, share in CHECKPOINTS:
        memory = LighterMemory(request.demand.memory, share)
        yield name, replace(request, demand=Demand(memory, request.demand.request))


class LighterMemory:
    """A memory model with lighter weights."""

    def __init__(self, memory: Memory, share: float) -> None:
        self._memory, self._share = memory, share

    def need(self, query: MemoryQuery) -> Need | Refusal:
        """Memory of one rank on an accelerator."""
        need = self._memory.need(query)
        if isinstance(need, Refusal):
            return need
        terms = tuple(
            term.model_copy(update={"bytes": int(term.bytes * self._share), "exact": False})
            if term.name == "weights"
            else term
            for term in need.terms
        )
        return need.model_copy(update={"terms": terms})


def _with_memory(request: Request, exact: MemoryModel) -> Request:
    memory = ExactOrEstimatedMemory(exact, request.profile)
    return replace(request, demand=Demand(memory, request.demand.request))


CONTEXTS = (131_072, 65_536, 32_768, 16_384, 8192, 4096, 2048)
MOST_RELEASES = 16
"""Releases that are tried one by one as if they were retired."""


def remedies(trial: Trial) -> tuple[str, ...]:
    """Changes that would let the model be placed, the smallest first; empty when none is known."""
    attempts = (
        _smaller_cache,
        _options,
        _more_accelerators,
        _without_a_release,
        _checkpoint,
        empty_or_extended_host,
        larger_accelerators,
    )
    return tuple(remedy for attempt in attempts if (remedy := next(attempt(trial), "")))


def _smaller_cache(trial: Trial) -> Iterator[str]:
    for setting, smaller in _smaller_requests(trial.request):
        demand = Demand(trial.request.demand.memory, smaller)
        if trial.seats(replace(trial.request, demand=demand)):
            yield f"Set {setting}: with it the model fits."


def _smaller_requests(request: Request) -> Iterator[tuple[str, MemoryRequest]]:
    """Fewer requests at once, a shorter context, and both."""
    wanted, spec, one = request.demand.request, request.spec, "`concurrency: 1`"
    if wanted.concurrency > 1:
        yield one, replace(wanted, concurrency=1)
    by_argument = spec.engine.arguments.has("--max-model-len")
    for tokens in CONTEXTS:
        if tokens >= wanted.least_context:
            continue
        length = f"`--max-model-len {tokens}` in `engine.args`"
        setting = length if by_argument else f"`context: {tokens}`"
        at_once = wanted_concurrency(spec, tokens)
        shorter = replace(wanted, context=tokens, stated=True, concurrency=at_once)
        yield setting, shorter
        if at_once > 1:
            yield f"{setting} and {one}", replace(shorter, concurrency=1)


def _options(trial: Trial) -> Iterator[str]:
    if trial.exact is None or trial.request.engine.name != EngineName.VLLM:
        return
    for arguments, request in other_options(trial.request, trial.exact):
        if trial.seats(request):
            yield f"Add `{arguments}` to `engine.args`: with it the model fits."


def _more_accelerators(trial: Trial) -> Iterator[str]:
    """As many accelerators as it takes, where the user wants fewer or lists them."""
    spec = trial.request.spec
    if spec.placement.accelerators == "auto" or trial.request.stated:
        return
    free = spec.placement.model_copy(update={"accelerators": "auto"})
    request = replace(trial.request, spec=spec.model_copy(update={"placement": free}))
    taken: Counter[int] = Counter()
    for seat in trial.seats(request):
        taken[seat.replica] += len(seat.accelerators)
    counts = set(taken.values())
    if len(counts) == 1 and counts != {0}:
        yield f"Set `placement.accelerators: {counts.pop()}`: with it the model fits."


def _without_a_release(trial: Trial) -> Iterator[str]:
    hosts = trial.fleet.hosts
    names = {claim.release: None for host in hosts for claim in host.claims if claim.release}
    for name in list(names)[:MOST_RELEASES]:
        views = [view_of(host) for host in trial.fleet.without(name).hosts]
        if trial.seats(views=views):
            yield f"Retire {name}: in its place the model fits."


def _checkpoint(trial: Trial) -> Iterator[str]:
    for name, request in other_checkpoints(trial.request):
        if seats := trial.seats(request):
            where, count = seats[0].host, len(seats[0].accelerators)
            on = f" on {count} accelerators of {where}" if count else f" on {where}"
            yield f"A checkpoint of it in {name} would fit{on}, as far as can be estimated."


def shortage(request: Request, fleet: FleetSnapshot, verdicts: Sequence[Verdict]) -> str:
    """One line: the parts of the memory on the nearest miss; empty when memory is not short."""
    # The policy `baseline` measures no single shape: its refusals have no count.
    memory = (one for one in verdicts if one.refusal == Reason.ACCELERATOR_MEMORY)
    short = [one for one in memory if one.count]
    if not short:
        return ""
    nearest = min(short, key=lambda one: one.needed - one.available)
    stated = request.stated
    split = Split(stated.tensor, stated.pipeline) if stated else Split(tensor=nearest.count)
    for kind in view_of(fleet.host(nearest.host)).groups:
        allocation = request.demand.least(kind, split)
        if allocation and allocation.bytes == nearest.needed:
            terms = (f"{term.name} {human_bytes(term.bytes)}" for term in allocation.need.terms)
            return (
                f"{human_bytes(allocation.bytes)} on each of {nearest.count} x {kind} for"
                f" {allocation.tokens} tokens: {', '.join(terms)}"
            )
    return ""
