"""Telling a person what became of the hosts, in one screen however many there are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from moorage.common.units import human_bytes
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.verdict import Verdict, count_refusals

MOST_SHOWN = 12


def explain(verdicts: Sequence[Verdict]) -> str:
    """Why hosts were refused: counted by reason where they are many, then host by host.

    The nearest misses come first; hosts that were refused with the same words share a line.
    """
    refused = sorted((verdict for verdict in verdicts if verdict.refusal), key=_miss)
    if not refused:
        return "every host would do" if verdicts else "the fleet has no hosts"
    lines = [f"{hosts}: {outcome}: {why}" for hosts, outcome, why in _grouped(refused)]
    return "\n".join([*summary(verdicts), *_cut(lines)])


def summary(verdicts: Sequence[Verdict]) -> list[str]:
    """One line that counts the hosts by reason; none for a single host, or without refusals."""
    counts = count_refusals(verdicts)
    if len(verdicts) < 2 or not counts:
        return []
    parts = [f"{number} {reason}" for reason, number in counts.items()]
    return [f"{sum(counts.values())} of {len(verdicts)} hosts refused: {', '.join(parts)}"]


def troubles(hosts: Iterable[HostSnapshot]) -> tuple[str, ...]:
    """What could not be found out about hosts, by host: it may be why one is not taken."""
    told = [f"{host.name}: {trouble}" for host in hosts for trouble in host.troubles]
    return tuple(_cut(told))


def rows(
    verdicts: Sequence[Verdict], terms: Sequence[str], chosen: Collection[str]
) -> list[tuple[str, str, str]]:
    """Rows of a table that fits one screen: hosts, outcome, why.

    Args:
        verdicts: One for each host.
        terms: What their points stand for.
        chosen: The hosts that were taken; they come first, with the parts of their score.
    """
    taken = [
        (verdict.host, "taken", f"{verdict.detail}{_parts(verdict, terms)}")
        for verdict in verdicts
        if verdict.host in chosen
    ]
    others = [verdict for verdict in verdicts if verdict.host not in chosen]
    able = sorted((v for v in others if not v.refusal), key=lambda v: -v.score)
    refused = sorted((v for v in others if v.refusal), key=_miss)
    return [*taken, *_shown(_grouped(able)), *_shown(_grouped(refused))]


def _grouped(verdicts: Sequence[Verdict]) -> list[tuple[str, str, str]]:
    """Hosts with the same words together. The words follow from what they are grouped by."""
    alike: dict[tuple[object, ...], list[Verdict]] = {}
    for one in verdicts:
        available = human_bytes(one.available)
        score = 0.0 if one.refusal else round(one.score, 1)
        key = (
            one.refusal,
            one.note,
            one.needed,
            available,
            one.count,
            one.there,
            one.held_by,
            score,
        )
        alike.setdefault(key, []).append(one)
    return [
        (_names([one.host for one in group]), group[0].refusal or "fits", group[0].detail)
        for group in alike.values()
    ]


def _shown(lines: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    if len(lines) <= MOST_SHOWN:
        return lines
    return [*lines[:MOST_SHOWN], (f"... {len(lines) - MOST_SHOWN} more", lines[-1][1], "")]


def _cut(lines: list[str]) -> list[str]:
    if len(lines) <= MOST_SHOWN:
        return lines
    return [*lines[:MOST_SHOWN], f"... and {len(lines) - MOST_SHOWN} more"]


def _parts(verdict: Verdict, terms: Sequence[str]) -> str:
    named = zip(terms, verdict.points, strict=False)
    told = ", ".join(f"{name} {points:.1f}" for name, points in named if points)
    return f" ({told})" if told else ""


def _miss(verdict: Verdict) -> tuple[bool, int]:
    return (not verdict.needed, verdict.needed - verdict.available)


def _names(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - 3} more" if len(hosts) > 3 else ""
    return ", ".join(hosts[:3]) + more
