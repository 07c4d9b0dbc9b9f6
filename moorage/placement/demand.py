"""The model to place, and the accelerator memory that one replica needs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import human_bytes
from moorage.inventory.snapshot import FleetSnapshot
from moorage.memory.calibration import Measurement
from moorage.memory.demand import MemoryModel
from moorage.memory.kv import keeps_states
from moorage.memory.need import STEPS, MemoryQuery, Need, largest
from moorage.memory.sizing import Sizeable
from moorage.memory.static_part import (
    FRACTION,
    before_loading,
    claim_with,
    least_static,
    static_bytes,
)
from moorage.models.profile import ModelProfile
from moorage.placement.engine import EngineTraits
from moorage.placement.engine_versions import Versions, engine_versions
from moorage.placement.memory import (
    CalibratedMemory,
    Memory,
    MemoryRequest,
    estimated_memory,
    exact_or_estimated,
    memory_request,
    stated_memory,
    with_server,
)
from moorage.placement.view import AcceleratorKind
from moorage.spec import EngineName, ModelSpec, Policy

MOST_REQUESTS = 1024
"""Most requests of a step to give recurrent states: vLLM's own default on large accelerators."""


@dataclass(frozen=True, slots=True)
class Split:
    """How the model is split: `tensor` ranks share a layer, `pipeline` stages divide the layers.

    Its experts are divided among `data` copies of it.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory taken of one accelerator; `utilization` is `--gpu-memory-utilization`."""

    bytes: int
    utilization: float
    tokens: int
    need: Need


class Demand:
    """The memory that each accelerator of a kind must give, by split and context; cached.

    Args:
        versions: Versions of vLLM that may run, by accelerator type; none = another engine.
    """

    def __init__(
        self,
        memory: Memory,
        request: MemoryRequest,
        versions: Mapping[str, Versions] | None = None,
    ) -> None:
        self.memory, self.request, self.versions = memory, request, versions or {}
        self._answers: dict[tuple[AcceleratorKind, Split, int], Allocation | Refusal] = {}

    def least(self, kind: AcceleratorKind, split: Split) -> Allocation | Refusal:
        """The smallest allocation that serves the request."""
        return self._answer(kind, split, self.request.least_context)

    def full(self, kind: AcceleratorKind, split: Split) -> Allocation | Refusal:
        """The allocation that serves the whole context."""
        return self._answer(kind, split, self.request.context)

    def fitted(self, kind: AcceleratorKind, split: Split, budget: int) -> Allocation:
        """The allocation for the longest context within a budget of bytes on each accelerator."""

        def fits(tokens: int) -> bool:
            one = self._answer(kind, split, tokens)
            if isinstance(one, Refusal):
                return False
            # A claim stated by the user must also be large enough for its own parts.
            return one.bytes <= budget and one.need.fits(kind.total, budget)

        answer = self._answer(kind, split, self.request.served_context(fits))
        if isinstance(answer, Refusal):
            raise answer.with_traceback(None)  # the refusal is cached
        share = self.request.utilization or self.request.static_fraction
        if not share and answer.need.stated is None:
            if self.request.policy != Policy.WHOLE:
                return answer
            answer = _enlarged(answer, kind.total, budget)
        return self._with_states(kind, split, answer)

    def uneven(self, ranks: int) -> str:
        """Why this number of tensor-parallel ranks cannot share the heads; empty = it can."""
        heads = {"attention": self.request.attention_heads, "vision": self.request.vision_heads}
        for name, number in heads.items():
            if number % ranks:
                return f"{ranks} do not divide {number} {name} heads"
        return ""

    def _answer(self, kind: AcceleratorKind, split: Split, tokens: int) -> Allocation | Refusal:
        key = (kind, split, tokens)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._allocate(*key)
        return answer

    def _with_states(
        self, kind: AcceleratorKind, split: Split, allocation: Allocation
    ) -> Allocation:
        """The allocation, with as many requests a step as its cache has recurrent states."""
        need, query = allocation.need, self._query(kind, split, allocation.tokens)
        if need.cache is None or not keeps_states(need.cache):
            return allocation

        def fits(requests: int) -> bool:
            # The need for more requests also counts what a larger step takes besides its cache.
            more = self.memory(replace(query, concurrency=requests))
            return isinstance(more, Need) and more.inside + more.outside <= allocation.bytes

        most = largest(fits, MOST_REQUESTS)
        full = self.memory(replace(query, concurrency=most or query.concurrency))
        if isinstance(full, Refusal):
            return allocation
        return replace(allocation, need=need.model_copy(update={"batch": full.batch}))

    def _query(self, kind: AcceleratorKind, split: Split, tokens: int) -> MemoryQuery:
        return MemoryQuery(
            total=kind.total,
            device_name=kind.name,
            device_type=kind.type,
            versions=self.versions.get(kind.type, ()),
            tensor=split.tensor,
            pipeline=split.pipeline,
            data=split.data,
            tokens=tokens,
            concurrency=self.request.concurrency,
        )

    def _allocate(self, kind: AcceleratorKind, split: Split, tokens: int) -> Allocation | Refusal:
        if uneven := self.uneven(split.tensor):
            return Refusal(Reason.PARALLELISM, uneven)
        need = self.memory(self._query(kind, split, tokens))
        if isinstance(need, Refusal):
            return Refusal(Reason.ENGINE, need.note)
        if obstacle := self._obstacle(need, kind.total):
            return Refusal(Reason.ENGINE, obstacle)
        return self._allocation_for(need, kind.total)

    def _obstacle(self, need: Need, total: int) -> str:
        """Why the claim or share that the user states is too small; empty = it suffices."""
        share, fraction = self.request.utilization, self.request.static_fraction
        if need.stated is not None and (need.stated - need.outside) * STEPS < total:
            stated, outside = human_bytes(need.stated), human_bytes(need.outside)
            return f"memory.claim {stated} leaves the engine nothing: {outside} are outside of it"
        if share and need.inside > ceil(total * share):
            return (
                f"--gpu-memory-utilization {share:g} is too small: {need.tokens} tokens take"
                f" {need.utilization(total):g}"
            )
        if fraction and least_static(need) > static_bytes(need, total, fraction):
            least = ceil(least_static(need) * STEPS / (total - before_loading(need))) / STEPS
            return f"{FRACTION} {fraction:g} is too small: {need.tokens} tokens take {least:g}"
        return ""

    def _allocation_for(self, need: Need, total: int) -> Allocation:
        """The allocation with the share that the user states, else with the smallest sufficient."""
        share, claim = self.request.utilization, need.claim(total)
        if share:
            claim = ceil(total * share) + need.outside
        elif self.request.static_fraction and need.stated is None:
            claim = claim_with(need, total, self.request.static_fraction)
        utilization = share or need.utilization(total)
        return Allocation(bytes=claim, utilization=utilization, tokens=need.tokens, need=need)


def _enlarged(allocation: Allocation, total: int, budget: int) -> Allocation:
    """The allocation enlarged to the whole budget, which gives a larger cache than requested."""
    outside = allocation.need.outside
    steps = (budget - outside) * STEPS // total
    # The engine rounds up, and a floating-point share may be slightly too large.
    while ceil(total * (steps / STEPS)) + outside > budget:
        steps -= 1
    share = max(allocation.utilization, steps / STEPS)
    claim = max(allocation.bytes, ceil(total * share) + outside)
    return replace(allocation, bytes=claim, utilization=share)


@dataclass(frozen=True, slots=True)
class Subject:
    """The model to place.

    Attributes:
        memory: Its memory model; None = only a rough estimate is possible.
        staged: Its name in the list of models on a host, `source@revision`.
        disk_bytes: Bytes of its files; 0 = unknown.
        companion_bytes: Bytes of the files of its adapters and draft model, for estimates.
        adapter_bytes: Bytes of the files of its LoRA adapters alone.
        measured: Measurements of earlier starts of its architecture, the newest first.
    """

    spec: ModelSpec
    profile: ModelProfile
    memory: Sizeable | None = None
    staged: str = ""
    disk_bytes: int = 0
    companion_bytes: int = 0
    adapter_bytes: int = 0
    measured: tuple[Measurement, ...] = ()

    @property
    def ram(self) -> int:
        """Bytes of RAM that the spec reserves for each seat; 0 = it states none."""
        stated = self.spec.placement.ram
        return 0 if stated == "auto" else int(stated)

    def demand(self, engine: EngineTraits, fleet: FleetSnapshot | None) -> Demand:
        """The accelerator memory that it needs; the fleet may set a default version of the engine.

        Raises:
            Failure: `BAD_SPEC` when an engine argument is malformed.
        """
        wanted = memory_request(self.spec, self.profile)
        if not engine.divides_heads:
            wanted = replace(wanted, attention_heads=0, vision_heads=0)
        versions = engine_versions(self.spec, engine, fleet)
        of_vllm = {kind: engine.vllm_versions(those) for kind, those in versions.items()}
        claim = self.spec.memory.claim
        if claim is not None and not (engine.predictable and self.memory):
            return Demand(partial(stated_memory, int(claim)), wanted, of_vllm)
        memory = self._memory(engine, fleet, versions)
        if size := engine.server_bytes(self.spec):
            memory = partial(with_server, memory, size)
        return Demand(memory, wanted, of_vllm)

    def _memory(
        self, engine: EngineTraits, fleet: FleetSnapshot | None, versions: Mapping[str, Versions]
    ) -> Memory:
        """The most exact memory model available: calibrated, exact or estimated."""
        spec, profile, memory = self.spec, self.profile, self.memory
        if not engine.predictable:
            return partial(estimated_memory, profile, f"the engine is {engine.name}", 0)
        if memory is None:
            return partial(estimated_memory, profile, "no tensor headers", self.companion_bytes)
        if isinstance(memory, MemoryModel) and engine.name == EngineName.SGLANG:
            memory = memory.of_sglang()
        known = partial(exact_or_estimated, memory.need, profile, self.companion_bytes)
        if not isinstance(memory, MemoryModel):
            return known
        configured = fleet.engine_versions(engine.name).default_version if fleet else ""
        likely = spec.engine.version or configured or engine.default_version
        running = {version for those in versions.values() for version in those}
        version = (running.pop() if len(running) == 1 else "") or likely
        given = spec.engine.arguments.words
        arguments = (*engine.memory_arguments(spec, memory.options.lora), *given)
        return CalibratedMemory(known, profile, engine.name, version, arguments, self.measured).need
