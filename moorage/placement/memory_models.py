"""How much memory an engine takes: estimated, stated, or predicted and then corrected."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Protocol

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB, human_bytes
from moorage.memory.calibration import (
    BATCHED,
    PIPELINE,
    SEQUENCES,
    TENSOR,
    CalibrationKey,
    Measurement,
    apply,
    calibration_key,
    residual,
)
from moorage.memory.estimates import CONTEXT, NCCL
from moorage.memory.need import MemoryQuery, Need, Term
from moorage.models.profile import ModelProfile


class Memory(Protocol):
    """Knows how much memory an engine takes; `MemoryModel` is the exact one."""

    def need(self, query: MemoryQuery) -> Need | Refusal:
        """Memory of one rank on an accelerator, or why there is no answer."""


OVERHEAD = GIB
"""Bytes for intermediate results and graphs, in addition to a fifth of the weights."""

SHARE_WHEN_UNKNOWN = 0.9
"""Share of an accelerator that is taken where nothing is known about the cache."""


class EstimatedMemory:
    """Weights from file sizes, cache from layers and heads; every term is marked as estimated.

    Args:
        profile: The model.
        why: Why it is only estimated.
        companion_bytes: Bytes of the files of adapters and draft model.
    """

    def __init__(self, profile: ModelProfile, why: str, companion_bytes: int = 0) -> None:
        self._profile, self._why, self._companion_bytes = profile, why, companion_bytes

    def need(self, query: MemoryQuery) -> Need | Refusal:
        """Memory of one rank on an accelerator, or why there is no answer."""
        if not self._profile.weight_bytes:
            reason = f"{self._why}, and the size of the weights is unknown: state `memory.claim`"
            return Refusal(Reason.UNKNOWN, reason)
        weights = self._profile.weight_bytes // query.ranks + self._companion_bytes
        rest = (weights, weights // 5 + OVERHEAD)
        terms = (
            _term("weights", rest[0], f"{self._why}: the size of the files over the ranks"),
            _term("activation", rest[1], "a fifth of the weights and 1 GiB"),
            self._cache(query, query.total - sum(rest)),
            _term("context", CONTEXT, "the driver's context of one process", inside=False),
            _term("nccl", NCCL * (query.ranks > 1), "between ranks", inside=False),
        )
        return Need.for_query(query, tuple(term for term in terms if term.bytes))

    def _cache(self, query: MemoryQuery, left: int) -> Term:
        each, heads = self._profile.kv_bytes_per_token, self._profile.kv_heads
        if not each or not heads:
            rest = max(0, int(left - (1 - SHARE_WHEN_UNKNOWN) * left))
            return _term("kv_cache", rest, "the cache of this model is unknown: what is left")
        tokens = query.tokens * query.concurrency
        size = ceil(each * tokens / min(query.tensor, heads) / query.pipeline)
        return _term("kv_cache", size, f"{tokens} tokens x {each} B over the ranks")


class StatedMemory:
    """The memory that the spec states for each accelerator; nothing is derived.

    Args:
        claim: Bytes of each accelerator.
    """

    def __init__(self, claim: int) -> None:
        self._claim = claim

    def need(self, query: MemoryQuery) -> Need | Refusal:
        """Memory of one rank on an accelerator, or why there is no answer."""
        term = _term("stated", self._claim, "memory.claim in the spec")
        return Need.for_query(query, (term,), stated=self._claim)


class ExactOrEstimatedMemory:
    """The exact model, and the estimate where its rules do not cover a question."""

    def __init__(self, exact: Memory, profile: ModelProfile, companion_bytes: int = 0) -> None:
        self._exact, self._profile, self._companion_bytes = exact, profile, companion_bytes

    def need(self, query: MemoryQuery) -> Need | Refusal:
        """Memory of one rank on an accelerator, or why there is no answer."""
        answer = self._exact.need(query)
        if not isinstance(answer, Refusal) or answer.reason != Reason.UNKNOWN:
            return answer
        why = f"not exact ({answer.note})"
        return EstimatedMemory(self._profile, why, self._companion_bytes).need(query)


def _term(name: str, size: int, reason: str, *, inside: bool = True) -> Term:
    return Term(name=name, bytes=size, exact=False, inside=inside, reason=reason)


class CalibratedMemory:
    """A memory model whose estimates give way to measurements of the same settings.

    Args:
        exact: The memory model.
        profile: The model.
        engine: Name of the engine.
        version: Its version.
        arguments: Engine arguments of the spec: what its fields make, then the user's own.
        measured: Measurements of this architecture, the newest first.
    """

    def __init__(
        self,
        exact: Memory,
        profile: ModelProfile,
        engine: str,
        version: str,
        arguments: Sequence[str],
        measured: Sequence[Measurement],
    ) -> None:
        self._exact, self._profile = exact, profile
        self._engine, self._version, self._arguments = engine, version, tuple(arguments)
        self._measured = measured

    def need(self, query: MemoryQuery) -> Need | Refusal:
        """Memory of one rank on an accelerator, or why there is no answer."""
        need = self._exact.need(query)
        if isinstance(need, Refusal):
            return need
        measurement = self._measurement(query, need)
        return _correct(need, measurement) if measurement else need

    def _measurement(self, query: MemoryQuery, need: Need) -> Measurement | None:
        """The newest measurement with these settings; a device's name implies its type."""
        sizes = {TENSOR[0]: query.tensor, PIPELINE[0]: query.pipeline}
        derived = [word for name, size in sizes.items() if size > 1 for word in (name, str(size))]
        # The launch states these too where the need is exact.
        derived += [BATCHED[0], str(need.batch.tokens), SEQUENCES[0], str(need.batch.seqs)]
        key = calibration_key(
            self._profile,
            self._engine,
            self._version,
            "",
            query.device_name,
            (*derived, *self._arguments),
        )
        return next((one for one in self._measured if _without_type(one.key) == key), None)


def _without_type(key: CalibrationKey) -> CalibrationKey:
    return key.model_copy(update={"accelerator_type": ""})


def _correct(need: Need, measurement: Measurement) -> Need:
    predicted = {term.name: term.bytes for term in need.terms}
    corrected = apply(predicted, residual(predicted, measurement.measured))
    terms = tuple(_correct_term(term, corrected[term.name], measurement) for term in need.terms)
    return need.model_copy(update={"terms": terms})


def _correct_term(term: Term, size: int, measurement: Measurement) -> Term:
    if size == term.bytes:
        return term
    reason = f"as {measurement.release} measured; predicted {human_bytes(term.bytes)}"
    return term.model_copy(update={"bytes": size, "exact": False, "reason": reason})
