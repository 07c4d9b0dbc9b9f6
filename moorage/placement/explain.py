"""Telling a person what became of the hosts, in one screen however many there are."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.placement.verdict import Refusal, Verdict, count_refusals

MOST_SHOWN = 12


def explain(verdicts: Sequence[Verdict]) -> str:
    """Why hosts were refused: counted by reason where they are many, then host by host.

    Hosts that were refused with the same words share a line.
    """
    refused = [verdict for verdict in verdicts if verdict.refusal]
    if not refused:
        return "every host would do"
    lines = _lines(refused)
    shown = lines[:MOST_SHOWN]
    if len(lines) > MOST_SHOWN:
        shown.append(f"... and {len(lines) - MOST_SHOWN} more")
    return "\n".join([*summary(verdicts), *shown])


def summary(verdicts: Sequence[Verdict]) -> list[str]:
    """One line that counts the hosts by reason; none for a single host."""
    if len(verdicts) < 2:
        return []
    counts = count_refusals(verdicts)
    parts = [f"{number} {reason}" for reason, number in counts.items()]
    return [f"{sum(counts.values())} of {len(verdicts)} hosts refused: {', '.join(parts)}"]


def table(verdicts: Sequence[Verdict]) -> list[dict[str, str]]:
    """Rows for a table: host, outcome, detail."""
    return [{"host": v.host, "outcome": v.refusal or "fits", "detail": v.detail} for v in verdicts]


def _lines(refused: Sequence[Verdict]) -> list[str]:
    """The nearest misses first; hosts with the same words together."""
    words: dict[tuple[Refusal | None, str], list[str]] = {}
    for verdict in sorted(refused, key=_miss):
        words.setdefault((verdict.refusal, verdict.detail), []).append(verdict.host)
    return [f"{_names(hosts)}: {reason}: {text}" for (reason, text), hosts in words.items()]


def _miss(verdict: Verdict) -> tuple[bool, int]:
    return (not verdict.needed, verdict.needed - verdict.available)


def _names(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - 3} more" if len(hosts) > 3 else ""
    return ", ".join(hosts[:3]) + more
