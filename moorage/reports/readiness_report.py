"""What became of a start, as a person reads it: its second try, and what the engines say."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.common.units import human_bytes, human_seconds
from moorage.engines.recovery import Correction
from moorage.readiness.engine_facts import EngineFacts
from moorage.readiness.smoke_test import Gate
from moorage.reports.document import Section

UNKNOWN = "unknown"


def corrections_section(corrections: Iterable[Correction]) -> Section:
    """What the second try changed; both numbers, and the engine's own words."""
    rows = tuple(
        (one.option, one.before, one.value, one.stated or "derived", _why(one))
        for one in corrections
    )
    text = "The first try failed; the second one was started with what the engine had named."
    return Section(
        title="Second try" * bool(rows),
        text=text * bool(rows),
        header=("option", "first try", "second try", "came from", "why"),
        rows=rows,
    )


def facts_section(facts: Iterable[EngineFacts]) -> Section:
    """What each engine says about itself, and what of it was not planned."""
    found = tuple(facts)
    return Section(
        title="What the engines say",
        text="\n".join(text for one in found for text in one.surprises),
        header=("workload", "version", "names", "context", "KV cache"),
        rows=tuple(map(_row, found)),
    )


def gate_section(gates: Iterable[Gate]) -> Section:
    """How each replica answered the golden prompts, and how fast."""
    found = tuple(gates)
    return Section(
        title="Golden prompts" * bool(found),
        text="\n".join(f"{one.workload}: {one.summary}" for one in found if not one.wrong),
        header=("workload", "asked", "answered", "took", "tokens", "wrong"),
        rows=tuple(
            (
                one.workload,
                answer.asked,
                answer.answered,
                human_seconds(answer.seconds),
                "unknown" if answer.tokens is None else str(answer.tokens),
                answer.wrong,
            )
            for one in found
            for answer in one.answers
        ),
    )


def _why(one: Correction) -> str:
    return f"{one.cause}: {one.reason}\n{one.evidence}".rstrip()


def _row(one: EngineFacts) -> tuple[str, ...]:
    tokens = f"{one.context} tokens" if one.context else UNKNOWN
    cache = human_bytes(one.kv_cache_bytes) if one.kv_cache_bytes else UNKNOWN
    held = f", {one.kv_tokens} tokens" if one.kv_tokens else ""
    return one.workload, one.version or UNKNOWN, ", ".join(one.names), tokens, cache + held
