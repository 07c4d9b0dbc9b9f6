"""What became of a start, as a person reads it: its second try, and what the engines say."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.document import Section
from moorage.engines.recovery import Correction
from moorage.readiness.engine_facts import EngineFacts
from moorage.units import human_bytes

UNKNOWN = "not said"


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


def _why(one: Correction) -> str:
    return f"{one.cause}: {one.reason}\n{one.evidence}".rstrip()


def _row(one: EngineFacts) -> tuple[str, ...]:
    tokens = f"{one.context} tokens" if one.context else UNKNOWN
    cache = human_bytes(one.kv_cache_bytes) if one.kv_cache_bytes else UNKNOWN
    held = f", {one.kv_tokens} tokens" if one.kv_tokens else ""
    return one.workload, one.version or UNKNOWN, ", ".join(one.names), tokens, cache + held
